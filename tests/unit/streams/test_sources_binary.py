"""Binary encodings of Zipkin and Jaeger in Kafka are the same traces as their JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from logs import NOW_NS, Read, cells
from span_encodings import jaeger_proto, thrift_list, zipkin_proto, zipkin_thrift

from tailbudget.schemas.records import Decoded
from tailbudget.streams.audit_log import Wanted, open_log
from tailbudget.streams.sources import Rules, SourceMessage, decoder

DATA = Path(__file__).parents[2] / "data"


def read(name: str, values: Iterable[bytes]) -> Read:
    one = decoder(name, Rules(service="x"))
    found: list[Decoded] = [
        one.decode([SourceMessage(value, n, NOW_NS) for n, value in enumerate(values)])
    ]
    rest = one.finish()
    return Read([*found, *([rest] if rest is not None else [])])


def same(one: Read, other: Read) -> None:
    """Both have the same requests of the same services, whatever message brought them."""
    assert one.columns.keys() == other.columns.keys()
    for service, columns in one.columns.items():
        mine, theirs = cells(columns), cells(other.columns[service])
        order = sorted(range(len(mine["ids"])), key=mine["ids"].__getitem__)
        back = sorted(range(len(theirs["ids"])), key=theirs["ids"].__getitem__)
        assert mine["stages"].keys() == theirs["stages"].keys()
        for key in ("ids", "cohorts", "ts_ns", "outcome", "total_ms"):
            assert [mine[key][n] for n in order] == [theirs[key][n] for n in back], key
        for stage, values in mine["stages"].items():
            theirs_ = theirs["stages"][stage]
            assert [values[n] for n in order] == [theirs_[n] for n in back], stage


def zipkin_2() -> list[dict[str, Any]]:
    spans: list[dict[str, Any]] = json.loads((DATA / "zipkin_messaging-kafka.json").read_text())
    return spans


def zipkin_1() -> list[dict[str, Any]]:
    found = json.loads((DATA / "trainticket_zipkin_case1.json").read_text())
    flat = [span for one in found for span in (one if isinstance(one, list) else [one])]
    for span in flat:
        for one in span.get("binaryAnnotations", []):
            one["value"] = str(one["value"])
    return flat


def test_version_2_as_protocol_buffers() -> None:
    """The public trace, encoded by hand, gives what its JSON gives."""
    spans = zipkin_2()
    json_, proto = (
        read("zipkin", [json.dumps(spans).encode()]),
        read("zipkin", [zipkin_proto(spans)]),
    )
    assert len(json_.columns) == 1
    same(json_, proto)
    assert proto.ledger == json_.ledger
    same(json_, read("zipkin", [zipkin_proto([span]) for span in spans]))


def test_version_1_as_thrift() -> None:
    """The public traces, encoded by another's library, give what their JSON gives."""
    spans = zipkin_1()
    json_, thrift = (
        read("zipkin", [json.dumps(spans).encode()]),
        read("zipkin", [thrift_list(spans)]),
    )
    assert sum(map(len, json_.columns.values())) >= 1
    same(json_, thrift)
    assert thrift.ledger == json_.ledger
    same(json_, read("zipkin", [zipkin_thrift(span) for span in spans]))


def test_spans_of_jaeger_as_protocol_buffers() -> None:
    """The public traces, a span a message, give what Jaeger's page gives."""
    page = json.loads((DATA / "deathstarbench_jaeger_head.json").read_text())
    traces = page["data"][:20]
    messages = [
        jaeger_proto(span, trace["processes"][span["processID"]])
        for trace in traces
        for span in trace["spans"]
    ]
    json_ = read("jaeger", [json.dumps(trace).encode() for trace in traces])
    assert sum(map(len, json_.columns.values())) == len(traces)
    same(json_, read("jaeger", messages))


def test_the_beginning_tells_the_encodings_apart() -> None:
    """One topic may change its encoding; JSON behind blank lines is JSON."""
    spans = zipkin_2()
    text = json.dumps(spans).encode()
    for value in (b"\n" + text, b"\n [" + text[1:], zipkin_proto(spans), text):
        assert len(read("zipkin", [value]).only) == 1, value[:8]


@pytest.mark.parametrize("name", [None, "zipkin"])
@pytest.mark.parametrize("encoding", ["proto", "thrift"])
def test_files_of_them(encoding: str, name: str | None, tmp_path: Path) -> None:
    """A file that a consumer of the topic wrote is recognised, and read as the topic is."""
    spans = zipkin_2() if encoding == "proto" else zipkin_1()
    path = tmp_path / f"spans.{encoding}"
    path.write_bytes(zipkin_proto(spans) if encoding == "proto" else thrift_list(spans))
    reading = open_log(path, Wanted(format=name), now_ns=NOW_NS)
    assert reading.found.format == "zipkin"
    text = tmp_path / "spans.json"
    text.write_text(json.dumps(spans))
    same(Read(open_log(text, now_ns=NOW_NS)), Read(reading))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("zipkin", b"\x0c\x7f\xff\xff\xff\x0a\x00\x01"),
        ("zipkin", b"\x0c\xff\xff\xff\xff"),
        ("zipkin", b"\x0c\x00\x00\x00\x01\x0a\x00\x01\x00"),
        ("zipkin", b"\x0a\x00\x01" + b"\0" * 8 + b"\x0f\x00\x06\x0c\x00\x00\x00\x01" * 40),
        ("zipkin", b"\x0a\x00\x01" + b"\0" * 8 + b"\x0f\x00\x07\x01\x7f\xff\xff\xff" + b"\0" * 9),
        ("zipkin", b"\x0a\x7f\x0a\x08"),
        ("jaeger", b"\x0a\x10\x00\x01\x02"),
        ("jaeger", b"\x0a\x02\x00\x01\x3a\xff\xff\xff\xff\x0f"),
    ],
)
def test_damaged_messages_are_rejected(name: str, value: bytes) -> None:
    """Lengths that lie, types that there are not and nesting without end are counted."""
    found = read(name, [value])
    assert found.ledger in ({"rejected.not_of_format": 1}, {"rejected.not_utf8": 1})
    assert found.rejected[0].raw == b""


def test_times_and_tags_of_other_types() -> None:
    """Numbers and truths of tags keep their types; a status is read from either."""
    span = {
        "traceID": "a1", "spanID": "b2", "operationName": "op", "references": [],
        "startTime": 1_772_445_600_000_123, "duration": 250_000,
        "tags": [
            {"key": "http.status_code", "type": "int64", "value": 503},
            {"key": "error", "type": "bool", "value": True},
            {"key": "ratio", "type": "float64", "value": 0.5},
        ],
    }  # fmt: skip
    columns = read("jaeger", [jaeger_proto(span, {"serviceName": "chat"})]).only
    assert columns.service == "chat"
    assert columns.outcome.tolist() == [4]
    assert columns.total_ms.tolist() == [250]
    assert columns.ts_ns.tolist() == [1_772_445_600_000_123_000]
    assert base64.b16encode(bytes.fromhex(columns.ids[0]))
