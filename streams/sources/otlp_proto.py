"""Traces of OpenTelemetry as protocol buffers: the collector's `otlp_proto` encoding.

A message is one `ExportTraceServiceRequest`, which has the same bytes as `TracesData`. The messages
are those of the package opentelemetry-proto, which the project OpenTelemetry generates itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import Status, TracesData

from tailbudget.streams.sources.otel_span import Raw, as_ns, kind_of, span_of
from tailbudget.streams.sources.span import Span
from tailbudget.streams.sources.trace_facts import Resource
from tailbudget.streams.sources.traces import TraceDecoder
from tailbudget.streams.sources.translated import NotOfFormatError


class OtlpProtoDecoder(TraceDecoder):
    """Decodes OTLP traces as protocol buffers; see the package docstring for what it promises."""

    name = "otlp_proto"

    @staticmethod
    def spans_of(value: bytes) -> Iterable[Span | None]:
        """Return the spans of a message."""
        try:
            traces = TracesData.FromString(value)
        except (DecodeError, RuntimeError) as error:  # RuntimeError: the pure-Python runtime
            raise NotOfFormatError(f"no TracesData: {error}") from None
        if not traces.resource_spans:
            raise NotOfFormatError("no TracesData: it holds no ResourceSpans")
        return list(_spans(traces))


def _spans(traces: Any) -> Iterator[Span | None]:
    for group in traces.resource_spans:
        resource = Resource.of(_attributes(group.resource.attributes))
        for scope in group.scope_spans:
            for span in scope.spans:
                yield span_of(_raw(span, resource))


def _raw(span: Any, resource: Resource) -> Raw:
    return Raw(
        trace=_id(span.trace_id),
        id=_id(span.span_id),
        parent=_id(span.parent_span_id),
        name=span.name,
        kind=kind_of(int(span.kind)),
        start_ns=as_ns(span.start_time_unix_nano),
        end_ns=as_ns(span.end_time_unix_nano),
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        attributes=_attributes(span.attributes),
        resource=resource,
    )


def _id(value: bytes) -> str:
    return value.hex() if any(value) else ""


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        which = pair.value.WhichOneof("value")
        if which in {"string_value", "int_value", "double_value", "bool_value"}:
            found[pair.key] = getattr(pair.value, which)
    return found
