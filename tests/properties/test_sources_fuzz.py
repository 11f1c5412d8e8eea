"""No message of any format makes a decoder raise, and each is cut any way."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.streams.sources import HOLDING, Rules, SourceMessage, decoder

KEYS = [
    "resourceSpans",
    "resource",
    "attributes",
    "scopeSpans",
    "spans",
    "traceId",
    "spanId",
    "parentSpanId",
    "name",
    "kind",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "status",
    "code",
    "key",
    "value",
    "stringValue",
    "intValue",
    "data",
    "traceID",
    "spanID",
    "operationName",
    "references",
    "refType",
    "startTime",
    "duration",
    "tags",
    "process",
    "processes",
    "processID",
    "serviceName",
    "id",
    "parentId",
    "timestamp",
    "annotations",
    "binaryAnnotations",
    "endpoint",
    "localEndpoint",
    "shared",
    "trace_id",
    "span_id",
    "start_time",
    "end_time",
    "context",
    "resource_attributes",
    "parent_id",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a1", "0001", "CHILD_OF", "cs", "sr", "ss", "cr", "1772445600000000000"])
    | st.sampled_from(["2026-03-02T10:00:00Z", "service.name", "gen_ai.latency.time_in_queue"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=30,
)


def otlp(one: Any) -> Any:
    """Return an odd span within a sound request."""
    span = {"traceId": "a1", "spanId": "b2", "startTimeUnixNano": "1772445600000000000"}
    span |= {"endTimeUnixNano": "1772445600900000000"} | (one if isinstance(one, dict) else {})
    return {"resourceSpans": [{"resource": one, "scopeSpans": [{"spans": [span, one]}]}]}


def odd(name: str, one: Any) -> Any:
    """Return an odd value where a format has its spans."""
    more = one if isinstance(one, dict) else {}
    if name == "jaeger":
        span = {"traceID": "a1", "spanID": "b2", "startTime": 1_772_445_600_000_000, "duration": 5}
        return {"spans": [{**span, **more}, one], "processes": one}
    if name == "zipkin":
        span = {"traceId": "a1", "id": "b2", "timestamp": 1_772_445_600_000_000, "duration": 5}
        return [{**span, **more}]
    if name == "otel_spans":
        span = {"trace_id": "a1", "span_id": "b2", "start_time": "2026-03-02T10:00:00Z"}
        return {"spans": [{**span, **more}]}
    return otlp(one)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(HOLDING)), st.lists(VALUES, max_size=4), st.booleans(), st.integers())
def test_odd_spans_never_raise(
    name: str,
    values: list[Any],
    bare: bool,  # noqa: FBT001
    cut: int,
) -> None:
    """Whatever stands where something else belongs is rejected, or counted."""
    one = decoder(name, Rules())
    for offset, value in enumerate(values):
        text = json.dumps(value if bare else odd(name, value)).encode()
        whole = cut % 3 == 0
        text = text if whole else text[: cut % (len(text) + 1)]
        one.decode([SourceMessage(text, offset, 1_800_000_000 * 10**9)])
    assert one.finish() is not None


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 80), st.binary(max_size=6))
def test_odd_bytes_never_raise(value: bytes, at: int, other: bytes) -> None:
    """Bytes that nearly are protocol buffers are rejected, or read."""
    head = bytes.fromhex("0a2a12280a260a10")
    for text in (value, head + value, (head + value)[:at] + other + (head + value)[at:]):
        one = decoder("otlp_proto", Rules())
        one.decode([SourceMessage(text, 0, 1_800_000_000 * 10**9)])
        one.finish()
