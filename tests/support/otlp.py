"""OTLP messages, as JSON and as protocol buffers, of spans that tests describe."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

T0_NS = 1_772_445_600 * 10**9
MS = 10**6


@dataclass(frozen=True)
class S:
    """A span: ids are small numbers, times are milliseconds after `T0_NS`."""

    trace: int
    id: int
    parent: int
    name: str
    start: float
    end: float | None
    kind: int = 1
    service: str = "chat"
    error: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)
    resource: Mapping[str, Any] = field(default_factory=dict)


def request(spans: Iterable[S]) -> dict[str, Any]:
    """Return an export request, in the mapping of OTLP to JSON."""
    return {"resourceSpans": [_group(span) for span in spans]}


def as_json(spans: Iterable[S]) -> bytes:
    """Return the message of the encoding `otlp_json`."""
    return orjson.dumps(request(spans))


def as_proto(spans: Iterable[S]) -> bytes:
    """Return the message of the encoding `otlp_proto`, made by Google's own library."""
    traces = TracesData()
    for group in (_group(span) for span in spans):
        for scope in group["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    span[key] = _base64(span[key])
        json_format.ParseDict(group, traces.resource_spans.add())
    return bytes(traces.SerializeToString())


def _group(span: S) -> dict[str, Any]:
    resource = {"service.name": span.service, **span.resource}
    return {
        "resource": {"attributes": _pairs(resource)},
        "scopeSpans": [{"spans": [_span(span)]}],
    }


def _span(span: S) -> dict[str, Any]:
    end = 0 if span.end is None else round(T0_NS + span.end * MS)
    return {
        "traceId": f"{span.trace:032x}",
        "spanId": f"{span.id:016x}",
        "parentSpanId": f"{span.parent:016x}" if span.parent else "",
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(round(T0_NS + span.start * MS)),
        "endTimeUnixNano": str(end),
        "attributes": _pairs(span.attributes),
        "status": {"code": 2} if span.error else {},
    }


def _pairs(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return [
        {"key": key, "value": {kinds[type(v)]: str(v) if type(v) is int else v}}
        for key, v in values.items()
    ]


def _base64(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text)).decode()
