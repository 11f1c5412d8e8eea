"""Traces of OpenTelemetry as JSON: the collector's `otlp_json` encoding, and its file exporter.

The mapping is that of OTLP: ids are hexadecimal, times in nanoseconds and integers are strings.
Old snake-case names and enumerations by their names are read too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tailbudget.streams.sources.otel_span import Raw, as_ns, kind_of, span_of
from tailbudget.streams.sources.span import Span
from tailbudget.streams.sources.trace_facts import Resource
from tailbudget.streams.sources.traces import TraceDecoder
from tailbudget.streams.sources.translated import NotOfFormatError, read_json

_SCALARS: Final = ("stringValue", "intValue", "doubleValue", "boolValue")
_ERROR: Final = frozenset({2, "2", "STATUS_CODE_ERROR"})


class OtlpJsonDecoder(TraceDecoder):
    """Decodes OTLP traces as JSON; see the package docstring for what it promises."""

    name = "otlp_json"

    @staticmethod
    def spans_of(value: bytes) -> Iterable[Span | None]:
        """Return the spans of a message: one export request, or one a line."""
        return [span for request in _requests(value) for span in _spans(request)]


def _requests(value: bytes) -> Iterator[Mapping[str, Any]]:
    try:
        found = [read_json(value)]
    except NotOfFormatError:
        if b"\n" not in value.strip():
            raise
        found = [read_json(line) for line in value.splitlines() if line.strip()]
    for one in found:
        for request in one if isinstance(one, list) else [one]:
            if not isinstance(request, dict) or _get(request, "resourceSpans") is None:
                raise NotOfFormatError("no object with resourceSpans")
            yield request


def _spans(request: Mapping[str, Any]) -> Iterator[Span | None]:
    for group in _objects(_get(request, "resourceSpans")):
        told = group.get("resource")
        known = _attributes(told.get("attributes")) if isinstance(told, dict) else {}
        resource = Resource.of(known)
        scopes = _get(group, "scopeSpans") or _get(group, "instrumentationLibrarySpans")
        for scope in _objects(scopes):
            for span in _objects(scope.get("spans")):
                yield span_of(_raw(span, resource))


def _raw(span: Mapping[str, Any], resource: Resource) -> Raw:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    return Raw(
        trace=_id(_get(span, "traceId")),
        id=_id(_get(span, "spanId")),
        parent=_id(_get(span, "parentSpanId")),
        name=str(span.get("name") or ""),
        kind=kind_of(span.get("kind")),
        start_ns=as_ns(_get(span, "startTimeUnixNano")),
        end_ns=as_ns(_get(span, "endTimeUnixNano")),
        failed=isinstance(code, int | str) and code in _ERROR,
        attributes=_attributes(span.get("attributes")),
        resource=resource,
    )


def _get(source: Mapping[str, Any], name: str) -> Any:
    """Return a field by its name in camel case, or in snake case."""
    if name in source:
        return source[name]
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return source.get(snake)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _id(value: Any) -> str:
    text = value.strip().lower() if isinstance(value, str) else ""
    return "" if not text.strip("0") else text


def _attributes(pairs: Any) -> dict[str, Any]:
    """Return the attributes of plain values; lists, maps and bytes are texts for no use of ours."""
    found: dict[str, Any] = {}
    for pair in _objects(pairs):
        key, value = pair.get("key"), pair.get("value")
        if isinstance(key, str) and isinstance(value, dict):
            scalar = _scalar(value)
            if scalar is not None:
                found[key] = scalar
    return found


def _scalar(value: Mapping[str, Any]) -> Any:
    for name in _SCALARS:
        scalar = _get(value, name)
        if scalar is not None:
            if name == "intValue" and isinstance(scalar, str):
                return int(scalar) if scalar.lstrip("-").isdecimal() and len(scalar) < 20 else None
            return scalar
    return None
