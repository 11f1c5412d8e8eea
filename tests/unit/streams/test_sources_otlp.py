"""Traces of OpenTelemetry, as JSON and as protocol buffers."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from logs import Read
from otlp import MS, T0_NS, S, as_json, as_proto

from tailbudget.schemas.errors import DecodeError, Refused
from tailbudget.schemas.records import Columns, Decoded, Outcome
from tailbudget.streams.audit_log import open_log
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder

DATA = Path(__file__).parents[2] / "data"
ARRIVAL_NS = T0_NS + 3_600 * 10**9
SERVER, CLIENT, PRODUCER, CONSUMER = 2, 3, 4, 5
COVARIATES = ("input_tokens", "output_tokens")
DIMS = ("route", "model_variant", "instance_id", "version")
RULES = Rules(default=ServiceRules(covariates=COVARIATES, cohort_dims=DIMS))
both = pytest.mark.parametrize("name", ["otlp_json", "otlp_proto"])


def decode(messages: Sequence[Sequence[S]], name: str = "otlp_json", wait_s: float = 15) -> Decoded:
    """Decode messages, and judge what is still held."""
    encode = as_json if name == "otlp_json" else as_proto
    rules = Rules(default=RULES.default, trace_wait_ns=int(wait_s * 1e9))
    one = decoder(name, rules)
    values = [SourceMessage(encode(m), i, ARRIVAL_NS) for i, m in enumerate(messages)]
    first, rest = one.decode(values), one.finish()
    assert rest is not None
    counts = Counter(first.ledger)
    counts.update(rest.ledger)
    services = (*first.services, *rest.services)
    rejected = (*first.rejected, *rest.rejected)
    unknown = first.unknown | rest.unknown
    return Decoded(services, rejected, counts, unknown, (*first.deploys, *rest.deploys))


def stages(columns: Columns, row: int = 0) -> dict[str, float]:
    """Return the milliseconds of a row by stage."""
    pairs = zip(columns.stages, columns.stage_ms[:, row].tolist(), strict=True)
    return {name: ms for name, ms in pairs if not math.isnan(ms)}


def count(decoded: Decoded) -> dict[str, int]:
    """Return the counts by reason."""
    found: Counter[str] = Counter()
    for (_, _, reason), number in decoded.ledger.items():
        found[reason] += number
    return dict(found)


@both
def test_a_root_with_its_children_is_a_request(name: str) -> None:
    """Children give stages by exclusive time; the rest of the root is nobody's."""
    spans = [
        S(7, 1, 0, "POST /v1/chat", 0, 100, SERVER, attributes={"http.route": "/v1/chat"}),
        S(7, 2, 1, "retrieve", 10, 40),
        S(7, 3, 2, "db", 15, 25),
        S(7, 4, 1, "generate", 40, 90),
    ]
    (columns,) = decode([spans], name).services
    assert columns.service == "chat"
    assert list(columns.ids) == [f"{7:032x}"]
    assert columns.ts_ns.tolist() == [T0_NS]
    assert columns.total_ms.tolist() == [100]
    assert stages(columns) == {"retrieve": 20, "db": 10, "generate": 50}
    assert columns.cohorts[0][0] == ("route", "/v1/chat")


@both
def test_spans_in_several_messages_and_any_order(name: str) -> None:
    """The children may come first, and the root last, in messages of their own."""
    messages = [
        [S(7, 3, 2, "db", 15, 25)],
        [S(7, 2, 1, "retrieve", 10, 40)],
        [S(7, 1, 0, "r", 0, 99)],
    ]
    (columns,) = decode(messages, name).services
    assert columns.total_ms.tolist() == [99]
    assert stages(columns) == {"retrieve": 20, "db": 10}
    assert columns.offset.tolist() == [0]


def test_parallel_spans_of_one_name_count_once() -> None:
    """Eight lookups side by side are one stage as long as all of them together take."""
    lookups = [S(7, 2 + i, 1, "lookup", 10 + i, 50 + i) for i in range(8)]
    (columns,) = decode([[S(7, 1, 0, "r", 0, 100), *lookups]]).services
    assert stages(columns) == {"lookup": 47}


def test_parallel_spans_of_several_names_have_their_own_time() -> None:
    """Their stages exceed the total together, which the models tell from."""
    spans = [S(7, 1, 0, "r", 0, 100), S(7, 2, 1, "a", 0, 100), S(7, 3, 1, "b", 0, 100)]
    (columns,) = decode([spans]).services
    assert stages(columns) == {"a": 100, "b": 100}


def test_what_is_not_waited_for_is_no_stage() -> None:
    """A consumer's side, and a span that outlives the request with all below it, are left out."""
    spans = [
        S(7, 1, 0, "r", 0, 100),
        S(7, 2, 1, "work", 0, 60),
        S(7, 3, 1, "audit log", 50, 400),
        S(7, 4, 3, "write", 60, 70),
        S(7, 5, 1, "mail", 20, 30, CONSUMER),
    ]
    decoded = decode([spans])
    assert stages(decoded.services[0]) == {"work": 60}
    assert count(decoded)["asynchronous"] == 3


def test_a_server_of_another_clock_is_put_into_its_client() -> None:
    """A server's span that fits into its client's, but lies outside, was stamped elsewhere."""
    spans = [
        S(7, 1, 0, "r", 0, 100),
        S(7, 2, 1, "call", 10, 60, CLIENT),
        S(7, 3, 2, "serve", 5_010, 5_040, SERVER, "rank"),
        S(7, 4, 3, "db", 5_015, 5_020, 1, "rank"),
    ]
    decoded = decode([spans])
    assert stages(decoded.services[0]) == {"call": 20, "serve": 25, "db": 5}
    assert "asynchronous" not in count(decoded)


def test_an_entry_span_whose_parent_is_elsewhere_is_a_request() -> None:
    """A server's span below a caller that sends no spans is a root; an inner one is not."""
    entered = decode([[S(7, 2, 1, "r", 0, 100, SERVER), S(7, 3, 2, "a", 0, 30)]])
    assert stages(entered.services[0]) == {"a": 30}
    inner = decode([[S(7, 3, 2, "a", 0, 30)]])
    assert inner.services == ()
    assert count(inner) == {"incomplete": 1}


def test_spans_of_a_lost_parent_belong_to_the_root_and_are_counted() -> None:
    """A span whose parent never came is below the root."""
    decoded = decode([[S(7, 1, 0, "r", 0, 100), S(7, 3, 2, "a", 10, 30)]])
    assert stages(decoded.services[0]) == {"a": 20}
    assert count(decoded)["orphan"] == 1


def test_circles_end() -> None:
    """Spans that are each other's parents are below no request."""
    spans = [S(7, 1, 0, "r", 0, 100), S(7, 2, 3, "a", 0, 9), S(7, 3, 2, "b", 0, 9)]
    decoded = decode([spans])
    assert stages(decoded.services[0]) == {}
    assert count(decoded)["orphan"] == 2


def test_a_root_that_did_not_end_is_no_request() -> None:
    """Its trace is counted as incomplete."""
    decoded = decode([[S(7, 1, 0, "r", 0, None), S(7, 2, 1, "a", 0, 9)]])
    assert decoded.services == ()
    assert count(decoded) == {"incomplete": 1}


def test_a_trace_is_judged_when_younger_spans_came() -> None:
    """After the wait it is judged; a span that comes later still is no request of its own."""
    messages = [
        [S(7, 1, 0, "r", 0, 100), S(7, 2, 1, "a", 0, 40)],
        [S(8, 1, 0, "r", 15_000, 15_050)],  # not younger than the wait
        [S(9, 1, 0, "r", 15_101, 15_102)],
        [S(7, 3, 1, "b", 40, 80)],
    ]
    one = decoder("otlp_json", Rules(trace_wait_ns=15 * 10**9))
    found = [
        one.decode([SourceMessage(as_json(spans), i, ARRIVAL_NS)])
        for i, spans in enumerate(messages)
    ]
    assert [sum(map(len, part.services)) for part in found] == [0, 0, 1, 0]
    assert stages(found[2].services[0]) == {"a": 40}
    rest = one.finish()
    assert rest is not None
    assert sorted(rest.services[0].total_ms.tolist()) == [1, 50]
    assert count(rest)["incomplete"] == 1


def test_a_span_from_the_future_does_not_move_the_clock() -> None:
    """What is stamped a day ahead judges nobody."""
    day = 86_400_000
    messages = [[S(7, 1, 0, "r", 0, 100)], [S(8, 1, 0, "r", day, day + 1)], [S(7, 2, 1, "a", 0, 9)]]
    decoded = decode(messages)
    assert stages(decoded.services[0]) == {"a": 9}
    assert count(decoded)["quarantined.future"] == 1


@both
def test_genai_conventions_old_and_new(name: str) -> None:
    """Tokens and model have the same names, whichever version wrote them; the stage is named."""
    for tokens in ("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens"):
        call = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m-7b",
            f"gen_ai.usage.{tokens[0]}": 412,
            f"gen_ai.usage.{tokens[1]}": 21,
            "gen_ai.prompt": "my secret",
        }
        spans = [S(7, 1, 0, "r", 0, 100), S(7, 2, 1, "chat m-7b", 10, 90, CLIENT, attributes=call)]
        decoded = decode([spans], name)
        (columns,) = decoded.services
        assert stages(columns) == {"chat": 80}
        assert columns.covariate[:, 0].tolist() == [412, 21]
        assert dict(columns.cohorts[0])["model_variant"] == "m-7b"
        assert "secret" not in repr(decoded)


def test_tokens_of_nested_calls_count_once() -> None:
    """A gateway's tokens are those of its engine; two calls in a row add up."""

    def call(id_: int, parent: int, start: float, n: int) -> S:
        return S(
            7, id_, parent, "chat", start, start + 9, attributes={"gen_ai.usage.input_tokens": n}
        )

    spans = [S(7, 1, 0, "r", 0, 100), call(2, 1, 0, 5), S(7, 3, 2, "x", 0, 9), call(4, 3, 0, 5)]
    (columns,) = decode([[*spans, call(5, 1, 20, 7)]]).services
    assert columns.covariate[0].tolist() == [12]


@both
def test_engines_tell_their_parts_in_seconds(name: str) -> None:
    """The span of vLLM and SGLang gives queue, prefill and decode."""
    latency = {"time_in_queue": 0.01, "time_in_model_prefill": 0.03, "time_in_model_decode": 0.05}
    attributes = {f"gen_ai.latency.{key}": value for key, value in latency.items()}
    (columns,) = decode(
        [[S(7, 1, 0, "llm_request", 0, 100, SERVER, attributes=attributes)]], name
    ).services
    assert stages(columns) == {"queue": 10, "prefill": 30, "decode": 50}
    old = {"gen_ai.latency.time_in_queue": 0.01, "gen_ai.latency.time_to_first_token": 0.04}
    (columns,) = decode(
        [[S(7, 1, 0, "llm_request", 0, 100, SERVER, attributes=old)]], name
    ).services
    assert stages(columns) == {"queue": 10, "prefill": 30, "decode": 60, "ttft": 40}


def test_milliseconds_under_names_of_seconds_are_missing() -> None:
    """A part that is longer than its span is counted as out of range, and not scaled."""
    attributes = {"gen_ai.latency.time_in_queue": 10.0, "gen_ai.latency.time_to_first_token": 40.0}
    decoded = decode([[S(7, 1, 0, "llm_request", 0, 100, SERVER, attributes=attributes)]])
    assert decoded.services[0].stages == ()
    assert count(decoded)["missing.stage_out_of_range"] == 1


@pytest.mark.parametrize(
    ("attributes", "error", "outcome"),
    [
        ({}, False, Outcome.OK),
        ({}, True, Outcome.ERROR),
        ({"http.response.status_code": 429}, False, Outcome.REJECTED),
        ({"http.status_code": 504}, True, Outcome.TIMEOUT),
        ({"http.status_code": 200}, True, Outcome.ERROR),
        ({"http.status_code": 200}, False, Outcome.OK),
        ({"rpc.grpc.status_code": 4}, True, Outcome.TIMEOUT),
        ({"rpc.grpc.status_code": 0}, False, Outcome.OK),
        ({"rpc.response.status_code": "CANCELLED"}, True, Outcome.CANCELLED),
        ({"error.type": "TimeoutError"}, True, Outcome.TIMEOUT),
    ],
)
def test_outcomes(attributes: dict[str, object], error: bool, outcome: Outcome) -> None:  # noqa: FBT001
    """Codes of HTTP and gRPC, and the span's own status, say how the request ended."""
    (columns,) = decode(
        [[S(7, 1, 0, "r", 0, 9, SERVER, error=error, attributes=attributes)]]
    ).services
    assert columns.outcome.tolist() == [outcome]


@pytest.mark.parametrize(
    ("attributes", "route"),
    [
        ({"http.route": "/users/{id}"}, "/users/{id}"),
        ({"http.target": "/users/123?key=secret"}, "/users/*"),
        ({"url.full": "https://host/a/0f8fad5bd9cb469fa16570867728950e/b"}, "/a/*/b"),
        ({"rpc.service": "Rank", "rpc.method": "Score"}, "Rank/Score"),
        ({}, "r"),
    ],
)
def test_routes(attributes: dict[str, str], route: str) -> None:
    """A route is a template; ids and queries of a path are left out."""
    (columns,) = decode([[S(7, 1, 0, "r", 0, 9, SERVER, attributes=attributes)]]).services
    assert columns.cohorts[0][0] == ("route", route)


def test_a_new_version_is_a_deploy() -> None:
    """The first version is none; one that begins to appear is, once, at its first span."""

    def at(trace: int, start: float, version: str) -> S:
        return S(trace, 1, 0, "r", start, start + 9, resource={"service.version": version})

    decoded = decode([[at(1, 0, "v1")], [at(2, 100, "v2"), at(3, 200, "v1")], [at(4, 300, "v2")]])
    assert [(d.service, d.version, d.at_ns) for d in decoded.deploys] == [
        ("chat", "v2", T0_NS + 100 * MS)
    ]
    assert sorted(dict(c)["version"] for c in decoded.services[0].cohorts) == ["v1", "v2"]


def test_stages_do_not_take_names_that_are_ours() -> None:
    """A span that is called like a column of a record is a stage all the same."""
    names = ("total", "timeout", "ttft", "unattributed")
    children = [S(7, 2 + i, 1, name, i, i + 1) for i, name in enumerate(names)]
    (columns,) = decode([[S(7, 1, 0, "r", 0, 100), *children]]).services
    assert stages(columns) == {f"{name} span": 1 for name in names}
    assert columns.limit_ms.tolist() != [1]


def test_a_request_is_no_older_than_its_own_message() -> None:
    """A second root that starts minutes after the trace was first heard of is not in the future."""
    one = decoder("otlp_json", Rules(trace_wait_ns=10**12))
    for number, start in enumerate((0, 300_000)):
        value = as_json([S(7, 1 + number, 0, "r", start, start + 5)])
        one.decode([SourceMessage(value, number, T0_NS + (start + 5) * MS)])
    rest = one.finish()
    assert rest is not None
    assert count(rest)["accepted"] == 2


def test_repeated_and_unusable_spans_are_counted() -> None:
    """A span that came twice counts once; one without an id is none."""
    root = S(7, 1, 0, "r", 0, 100)
    decoded = decode([[root, root], [S(7, 0, 1, "a", 0, 1), S(0, 5, 1, "a", 0, 1)]])
    assert count(decoded) == {"accepted": 1, "duplicate": 1, "unusable": 2}


@pytest.mark.parametrize("name", ["otlp_json", "otlp_proto"])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", None),
        (b'{"resourceSpans": 5}', None),
        (b"\xff\xfe" + b"x" * 50, None),
        (b"[" * 100_000, None),
        (b"x" * 16_000_001, "rejected.oversize"),
        (b" \n", "tombstone"),
        (None, "tombstone"),
    ],
)
def test_damage_is_rejected(name: str, value: bytes | None, reason: str | None) -> None:
    """Each message that is none of the format is rejected once, and none of its text is kept."""
    decoded = decoder(name, RULES).decode([SourceMessage(value, 3, ARRIVAL_NS)])
    assert decoded.services == ()
    if value == b'{"resourceSpans": 5}' and name == "otlp_json":
        assert decoded.rejected == ()
        return
    found = count(decoded)
    assert sum(found.values()) == 1
    assert reason is None or found == {reason: 1}
    assert [r.raw for r in decoded.rejected] == [b""] * (reason != "tombstone")


def test_every_cut_of_a_message_is_rejected_or_read() -> None:
    """A truncated protocol buffer never raises."""
    whole = as_proto([S(7, 1, 0, "r", 0, 100), S(7, 2, 1, "a", 0, 40)])
    for size in range(len(whole)):
        decoder("otlp_proto", RULES).decode([SourceMessage(whole[:size], 0, ARRIVAL_NS)])


def test_the_example_of_the_specification() -> None:
    """OpenTelemetry's example is one server's span of a second, whose parent is not in the file."""
    path = DATA / "otlp_trace_example.json"
    (span,) = json.loads(path.read_text())["resourceSpans"][0]["scopeSpans"][0]["spans"]
    length_ns = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
    reading = open_log(path, now_ns=ARRIVAL_NS)
    log = Read(reading)
    assert reading.found.format == "otlp_json"
    assert log.only.service == "my.service"
    assert log.only.total_ms.tolist() == [length_ns / MS]
    assert log.only.ts_ns.tolist() == [int(span["startTimeUnixNano"])]
    assert list(log.only.ids) == [span["traceId"].lower()]


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    """A compressed line without end is not held, and the refusal says that it is too long."""
    path = tmp_path / "traces.json.gz"
    with gzip.open(path, "wb", 1) as file:
        file.write(b'{"resourceSpans": [{"x": "')
        for _ in range(40):
            file.write(b"a" * 1_000_000)
    with pytest.raises(Refused, match=r"read as otlp_json.*at most 16,000,000 are read"):
        open_log(path, now_ns=ARRIVAL_NS)


def test_a_file_without_a_request_is_refused(tmp_path: Path) -> None:
    """Traces of which no root came hold no request, and the refusal says so."""
    path = tmp_path / "traces.json"
    path.write_bytes(as_json([S(7, 2, 1, "a", 0, 9)]))
    with pytest.raises(Refused, match="rows is a request; incomplete"):
        open_log(path, now_ns=ARRIVAL_NS)


def test_a_file_is_put_together_to_its_end(tmp_path: Path) -> None:
    """Lines of the collector's file exporter may hold the spans of a trace anywhere."""
    roots = [S(n, 1, 0, "r", n * 60_000, n * 60_000 + 100) for n in range(1, 40)]
    children = [S(n, 2, 1, "a", n * 60_000, n * 60_000 + n) for n in range(1, 40)]
    path = tmp_path / "traces.json"
    path.write_bytes(b"\n".join(as_json([one]) for one in [*roots, *children]))
    log = Read(open_log(path, now_ns=ARRIVAL_NS))
    assert log.only.total_ms.tolist() == [100] * 39
    assert log.only.stage_ms[0].tolist() == list(range(1, 40))
    assert log.ledger["accepted"] == 39


PROTO_SPANS = [[S(n, 1, 0, "r", n, n + 100), S(n, 2, 1, "a", n, n + 40)] for n in range(1, 30)]


@pytest.mark.parametrize("framed", [True, False])
@pytest.mark.parametrize("suffix", ["pb", "bin", "pb.gz"])
def test_files_of_protocol_buffers(framed: bool, suffix: str, tmp_path: Path) -> None:  # noqa: FBT001
    """The file exporter puts each message's length before it; one TracesData stands as it is."""
    messages = [as_proto(spans) for spans in PROTO_SPANS]
    parts = [len(m).to_bytes(4, "big") + m if framed else m for m in messages]
    path = tmp_path / f"traces.{suffix}"
    data = b"".join(parts)
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    reading = open_log(path, now_ns=ARRIVAL_NS)
    log = Read(reading)
    assert reading.found.format == "otlp_proto"
    assert log.only.total_ms.tolist() == [100] * 29
    assert log.only.stage_ms[0].tolist() == [40] * 29


@pytest.mark.parametrize("framed", [True, False])
def test_a_truncated_file_of_protocol_buffers_is_an_error(framed: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """It says which message does not end."""
    message = as_proto(PROTO_SPANS[0])
    data = len(message).to_bytes(4, "big") + message if framed else message
    path = tmp_path / "traces.pb"
    path.write_bytes(data + data[:-7])
    with pytest.raises(DecodeError, match=r"message .* ends 7 bytes early"):
        Read(open_log(path, now_ns=ARRIVAL_NS))
