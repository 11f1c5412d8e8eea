"""Jaeger's spans as protocol buffers: what Jaeger 1 writes to Kafka unless told otherwise.

A message is one span of `model.proto` of jaegertracing/jaeger-idl, with its process. It becomes
the object that Jaeger's JSON has for it. (Jaeger 2 writes OTLP.)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from google.protobuf.message import DecodeError

from tailbudget.streams.sources.proto_messages import Messages, classes
from tailbudget.streams.sources.translated import NotOfFormatError

_PROTO: Final[Messages] = {
    "KeyValue": {
        "key": (1, "string"),
        "v_type": (2, "int32"),
        "v_str": (3, "string"),
        "v_bool": (4, "bool"),
        "v_int64": (5, "int64"),
        "v_float64": (6, "double"),
    },
    "Time": {"seconds": (1, "int64"), "nanos": (2, "int32")},
    "Reference": {"span_id": (2, "bytes"), "ref_type": (3, "int32")},
    "Process": {"service_name": (1, "string"), "tags": (2, "KeyValue*")},
    "Span": {
        "trace_id": (1, "bytes"),
        "span_id": (2, "bytes"),
        "operation_name": (3, "string"),
        "references": (4, "Reference*"),
        "start_time": (6, "Time"),
        "duration": (7, "Time"),
        "tags": (8, "KeyValue*"),
        "process": (10, "Process"),
    },
}
_VALUES: Final = ("v_str", "v_bool", "v_int64", "v_float64")
_REFERENCES: Final = ("CHILD_OF", "FOLLOWS_FROM")
_US_PER_S: Final = 1_000_000
_NS_PER_US: Final = 1_000


def span_object(value: bytes) -> dict[str, Any]:
    """Return the span that a message is, as the object that its JSON would be.

    Raises:
        NotOfFormatError: it is none.
    """
    try:
        span = _classes()["Span"].FromString(value)
    except (DecodeError, RuntimeError) as error:  # RuntimeError: the pure-Python runtime
        raise NotOfFormatError(f"no span of Jaeger: {error}") from None
    return {
        "traceID": span.trace_id.hex(),
        "spanID": span.span_id.hex(),
        "operationName": span.operation_name,
        "references": [
            {"refType": _REFERENCES[one.ref_type == 1], "spanID": one.span_id.hex()}
            for one in span.references
        ],
        "startTime": _us(span.start_time),
        "duration": _us(span.duration) if span.HasField("duration") else None,
        "tags": _tags(span.tags),
        "process": {"serviceName": span.process.service_name, "tags": _tags(span.process.tags)},
    }


def _us(time: Any) -> int:
    return int(time.seconds) * _US_PER_S + int(time.nanos) // _NS_PER_US


def _tags(pairs: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {"key": one.key, "value": getattr(one, _VALUES[one.v_type])}
        for one in pairs
        if 0 <= one.v_type < len(_VALUES)
    ]


@cache
def _classes() -> dict[str, Any]:
    return classes("jaeger.api_v2", _PROTO)
