"""Traces of Jaeger and of Zipkin."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest
from instants import Timed, exclusive
from logs import Read

from tailbudget.schemas.records import Columns, Outcome
from tailbudget.streams.audit_log import Wanted, open_log
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder

DATA = Path(__file__).parents[2] / "data"
NOW_NS = 1_800_000_000 * 10**9
T0_US = 1_772_445_600 * 10**6


def read(name: str) -> tuple[str, Read]:
    reading = open_log(DATA / name, now_ns=NOW_NS)
    return reading.found.format, Read(reading)


def stages(columns: Columns, row: int = 0) -> dict[str, float]:
    pairs = zip(columns.stages, columns.stage_ms[:, row].tolist(), strict=True)
    return {name: ms for name, ms in pairs if not math.isnan(ms)}


def judged(name: str, *messages: Any) -> Read:
    """Decode messages of JSON to their end."""
    one = decoder(name, Rules(default=ServiceRules(cohort_dims=("route",))))
    values = [SourceMessage(json.dumps(m).encode(), i, NOW_NS) for i, m in enumerate(messages)]
    rest = (one.decode(values), one.finish())
    return Read(part for part in rest if part is not None)


def test_every_trace_of_death_star_bench() -> None:
    """Totals are the durations of the roots; stages are what an instant-by-instant count gives."""
    traces = json.loads((DATA / "deathstarbench_jaeger_head.json").read_text())["data"]
    name, log = read("deathstarbench_jaeger_head.json")
    assert name == "jaeger"
    assert log.ledger == {"accepted": 9}
    columns = log.only
    assert columns.service == "nginx-web-server"
    for row, trace in enumerate(traces):
        (root,) = (span for span in trace["spans"] if not span["references"])
        timed = [
            Timed(
                span["spanID"],
                span["references"][0]["spanID"] if span["references"] else "",
                span["operationName"],
                span["startTime"] - root["startTime"],
                span["startTime"] - root["startTime"] + span["duration"],
            )
            for span in trace["spans"]
        ]
        wanted = {name: us / 1e3 for name, us in exclusive(timed, root["duration"]).items()}
        assert columns.ids[row] == trace["traceID"]
        assert columns.total_ms[row] == root["duration"] / 1e3
        assert columns.ts_ns[row] == root["startTime"] * 1_000
        assert stages(columns, row) == pytest.approx(wanted, abs=1e-9)
        covered = sum(span["duration"] for span in trace["spans"][1:] if span is not root)
        assert covered > root["duration"]  # parallel and nested spans: no sum of durations will do


def test_the_trace_of_train_ticket() -> None:
    """Zipkin 1: both halves of a call are in one span; the client's time is less the server's."""
    spans = json.loads((DATA / "trainticket_zipkin_case1.json").read_text())
    (root,) = (span for span in spans if "parentId" not in span)
    name, log = read("trainticket_zipkin_case1.json")
    assert name == "zipkin"
    assert log.ledger["accepted"] == 1
    columns = log.only
    assert columns.service == "ts-preserve-service"
    assert columns.total_ms.tolist() == [root["duration"] / 1e3]
    assert columns.ts_ns.tolist() == [root["timestamp"] * 1_000]
    timed = []
    for span in spans:
        at = {note["value"]: note["timestamp"] - root["timestamp"] for note in span["annotations"]}
        own, parent = span["id"], f"{span['parentId']}s" if "parentId" in span else ""
        if "cs" in at:
            timed.append(Timed(f"{own}c", parent, span["name"], at["cs"], at["cr"]))
            parent = f"{own}c"
        timed.append(Timed(f"{own}s", parent, span["name"], at["sr"], at["ss"]))
    wanted = exclusive([_whole(one) for one in timed], root["duration"])
    found = stages(columns)
    names = ("http:/station/queryforid", "http:/security/check", "http:/order/calculate")
    for one in names:
        assert found[one] == pytest.approx(wanted[one] / 1e3, abs=0.002)
    assert sum(found.values()) == pytest.approx(sum(wanted.values()) / 1e3, abs=0.1)


def _whole(one: Timed) -> Timed:
    return Timed(one.id, one.parent, one.name, int(one.start), int(one.end))


def test_messages_are_not_waited_for() -> None:
    """Zipkin 2: the poll of 26 us is the request; what its messages cause outlives it."""
    spans = json.loads((DATA / "zipkin_messaging-kafka.json").read_text())
    (root,) = (span for span in spans if "parentId" not in span)
    after = [span for span in spans if span is not root]
    _, log = read("zipkin_messaging-kafka.json")
    assert log.only.total_ms.tolist() == [root["duration"] / 1e3]
    assert log.only.stages == ()
    assert log.ledger["asynchronous"] == len(after) == 27
    assert list(log.only.ids) == [root["traceId"]]


def test_the_spans_of_inference_perf() -> None:
    """Nine spans without parents are nine requests of five services; no text of theirs is kept."""
    path = DATA / "inferenceperf_otel_customer_support.json"
    spans = json.loads(path.read_text())["spans"]
    reading = open_log(path, now_ns=NOW_NS)
    assert reading.found.format == "otel_spans"
    assert "times of spans without a zone: read as UTC" in reading.found.assumptions
    log = Read(reading)
    found = {
        (service, columns.ids[row].partition(":")[2]): columns.total_ms[row]
        for service, columns in log.columns.items()
        for row in range(len(columns))
    }
    seconds = {
        (s["resource_attributes"]["service.name"], s["span_id"]): float(s["end_time"][17:])
        - float(s["start_time"][17:])
        for s in spans
    }
    assert found == {key: s * 1e3 for key, s in seconds.items()}
    assert all(dict(c)["model_variant"] == "gpt-4" for v in log.columns.values() for c in v.cohorts)
    assert "SmartHome" not in repr(log.columns) + repr(log.rejected)


def span2(id_: str, parent: str | None, start: int, length: int | None, **more: Any) -> Any:
    """Return a span of Zipkin 2."""
    span = {"traceId": "00000000000000a1", "id": id_, "name": more.pop("name", id_), **more}
    span |= {
        "timestamp": T0_US + start,
        "localEndpoint": {"serviceName": more.get("service", "chat")},
    }
    if parent is not None:
        span["parentId"] = parent
    if length is not None:
        span["duration"] = length
    return span


@pytest.mark.parametrize("shared", [True, None])
def test_halves_of_a_call_share_an_id(shared: bool | None) -> None:  # noqa: FBT001
    """The server's half is below the client's, and has the children; whether it says so or not."""
    flag = {"shared": True} if shared else {}
    spans = [
        span2("1", None, 0, 100_000, kind="SERVER"),
        span2("2", "1", 10_000, 80_000, kind="CLIENT", name="call"),
        span2("2", "1", 20_000, 60_000, kind="SERVER", name="serve", service="rank", **flag),
        span2("3", "2", 30_000, 40_000, name="db", service="rank"),
    ]
    for order in (spans, spans[::-1]):
        log = judged("zipkin", *[[one] for one in order])
        assert stages(log.only) == {"call": 20, "serve": 20, "db": 40}
        assert log.ledger == {"accepted": 1}


def test_a_servers_half_alone_is_below_what_called_it() -> None:
    """Where the client's half was not reported the server's is below the parent; or is the root."""
    spans = [
        span2("1", None, 0, 100_000),
        span2("2", "1", 20_000, 60_000, kind="SERVER", name="serve", shared=True),
    ]
    assert stages(judged("zipkin", spans).only) == {"serve": 60}
    alone = span2("1", None, 0, 100_000, kind="SERVER", shared=True)
    assert judged("zipkin", [alone]).only.total_ms.tolist() == [100]


def test_a_span_reported_in_pieces_is_joined() -> None:
    """A span without a duration gets it from a later report; one that never ends has no stage."""
    begun, ended = span2("2", "1", 10_000, None), span2("2", "1", 10_000, 30_000)
    root = span2("1", None, 0, 100_000)
    assert stages(judged("zipkin", [root, begun], [ended]).only) == {"2": 30}
    assert stages(judged("zipkin", [root, begun]).only) == {}
    assert judged("zipkin", [span2("1", None, 0, None)]).ledger == {"incomplete": 1}


def test_version_1_of_separate_reports() -> None:
    """Each side reports its own half under one id; durations come from the annotations."""

    def span1(side: str, first: str, last: str, start: int, end: int) -> Any:
        host = {"serviceName": side}
        notes = [
            {"timestamp": T0_US + start, "value": first, "endpoint": host},
            {"timestamp": T0_US + end, "value": last, "endpoint": host},
        ]
        return {"traceId": "a1", "id": "2", "parentId": "1", "name": "call", "annotations": notes}

    root = {
        "traceId": "00000000000000a1", "id": "1", "name": "r", "timestamp": T0_US,
        "duration": 100_000, "annotations": [],
        "binaryAnnotations": [
            {"key": "lc", "value": "chat", "endpoint": {"serviceName": "chat"}},
            {"key": "http.status_code", "value": "503"},
        ],
    }  # fmt: skip
    halves = [span1("chat", "cs", "cr", 10_000, 90_000), span1("rank", "sr", "ss", 20_000, 80_000)]
    log = judged("zipkin", [root], halves[1:], halves[:1])
    assert stages(log.only) == {"call": 80}
    assert log.only.service == "chat"
    assert log.only.outcome.tolist() == [Outcome.REJECTED]


def jaeger(id_: str, parent: str | None, start: int, length: int, kind: str = "CHILD_OF") -> Any:
    """Return a span of Jaeger's page."""
    refs = [] if parent is None else [{"refType": kind, "traceID": "a1", "spanID": parent}]
    return {
        "traceID": "a1", "spanID": id_, "operationName": id_, "references": refs,
        "startTime": T0_US + start, "duration": length, "processID": "p1",
        "tags": [{"key": "http.status_code", "type": "int64", "value": 200}],
    }  # fmt: skip


def test_what_follows_from_a_span_is_not_waited_for() -> None:
    """FOLLOWS_FROM is no stage, though it lies within the request."""
    spans = [
        jaeger("1", None, 0, 100),
        jaeger("2", "1", 0, 50),
        jaeger("3", "1", 50, 10, "FOLLOWS_FROM"),
    ]
    trace = {"traceID": "a1", "spans": spans, "processes": {"p1": {"serviceName": "chat"}}}
    for message in (trace, {"data": [trace]}, [trace]):
        log = judged("jaeger", message)
        assert stages(log.only) == {"2": 0.05}
        assert log.ledger == {"accepted": 1, "asynchronous": 1}


def test_a_span_of_a_topic() -> None:
    """Jaeger's JSON in Kafka has base64 ids and durations as text."""

    def coded(id_: int, parent: int, start: str, length: str) -> Any:
        text = {n: base64.b64encode(n.to_bytes(8, "big")).decode() for n in (1, 2)}
        refs = [
            {"refType": "CHILD_OF", "traceId": "AAAAAAAAAAAAAAAAAAAAoQ==", "spanId": text[parent]}
        ]
        return {
            "traceId": "AAAAAAAAAAAAAAAAAAAAoQ==", "spanId": text[id_], "operationName": f"op{id_}",
            "references": refs if parent else [], "startTime": f"2026-03-02T10:00:00.{start}Z",
            "duration": length, "process": {"serviceName": "chat"},
            "tags": [
                {"key": "span.kind", "vStr": "server"},
                {"key": "error", "vType": "BOOL", "vBool": True},
            ],
        } | ({} if parent else {"references": []})  # fmt: skip

    spans = [coded(2, 1, "010000", "0.004s"), {**coded(1, 2, "000000", "0.1s"), "references": []}]
    log = judged("jaeger", *spans)
    assert stages(log.only) == {"op2": 4}
    assert log.only.total_ms.tolist() == [100]
    assert log.only.outcome.tolist() == [Outcome.ERROR]


@pytest.mark.parametrize("name", ["jaeger", "zipkin", "otel_spans"])
@pytest.mark.parametrize(
    "value", [b"{", b"[1]", b"5", b"{}", b"\xff", b"[" * 50_000, b'[{"a": 1}]']
)
def test_damage_is_rejected(name: str, value: bytes) -> None:
    """What is no trace is counted once, and its text is not kept."""
    decoded = decoder(name, Rules()).decode([SourceMessage(value, 0, NOW_NS)])
    assert [r.reason.partition(".")[0] for r in decoded.rejected] == ["rejected"]
    assert decoded.rejected[0].raw == b""


@pytest.mark.parametrize(
    "name",
    [
        "deathstarbench_jaeger_head.json",
        "trainticket_zipkin_case1.json",
        "zipkin_messaging-kafka.json",
    ],
)
def test_truncated_files_do_not_pass_for_whole(name: str, tmp_path: Path) -> None:
    """What was cut off is rejected, or an error; nothing raises otherwise."""
    text = (DATA / name).read_bytes()
    path = tmp_path / name
    path.write_bytes(text[: len(text) * 2 // 3])
    log = Read(open_log(path, Wanted(), now_ns=NOW_NS))
    assert [r.reason for r in log.rejected] == ["rejected.not_json"]
