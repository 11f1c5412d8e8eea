"""Spans of OpenTelemetry as plain JSON objects, as SDKs print them and tools collect them.

Attributes are a mapping, times are texts. Read are the objects that `ReadableSpan.to_json` of the
Python SDK and its console exporter give (ids under `context`, "0x" before them), and lists of flat
ones (`trace_id`, `span_id`, `parent_span_id`, `resource_attributes`). A time without a zone is UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tailbudget.streams.sources.otel_span import Raw, as_ns, kind_of, span_of
from tailbudget.streams.sources.span import Span
from tailbudget.streams.sources.timetext import UNREADABLE, epoch_ns
from tailbudget.streams.sources.trace_facts import Resource
from tailbudget.streams.sources.traces import TraceDecoder
from tailbudget.streams.sources.translated import NotOfFormatError, read_json

_ERROR: Final = frozenset({"2", "ERROR", "STATUSCODE.ERROR", "STATUS_CODE_ERROR"})


class OtelSpansDecoder(TraceDecoder):
    """Decodes spans as plain JSON; see the package docstring for what it promises."""

    name = "otel_spans"
    says = ("times of spans without a zone: read as UTC",)

    @staticmethod
    def spans_of(value: bytes) -> Iterable[Span | None]:
        """Return the spans of a message: one, a list of them, or an object with `spans`."""
        return [span_of(_raw(one)) for one in _objects(read_json(value))]


def _objects(found: Any) -> Iterator[Mapping[str, Any]]:
    for one in found if isinstance(found, list) else [found]:
        if not isinstance(one, dict):
            raise NotOfFormatError("no span: an element is no object")
        if isinstance(one.get("spans"), list):
            yield from _objects(one["spans"])
        elif "start_time" in one:
            yield one
        else:
            raise NotOfFormatError("no span: it has no start_time")


def _raw(span: Mapping[str, Any]) -> Raw:
    context = _mapping(span.get("context"))
    status = _mapping(span.get("status"))
    code = str(status.get("status_code", status.get("code", ""))).upper()
    parent = span.get("parent_span_id", span.get("parent_id"))
    resource = span.get("resource_attributes") or _mapping(span.get("resource")).get("attributes")
    name = span.get("name")
    return Raw(
        trace=_id(span.get("trace_id", context.get("trace_id"))),
        id=_id(span.get("span_id", context.get("span_id"))),
        parent=_id(parent),
        name=name if isinstance(name, str) else "",
        kind=kind_of(span.get("kind")),
        start_ns=_time_ns(span.get("start_time")),
        end_ns=_time_ns(span.get("end_time")),
        failed=code in _ERROR,
        attributes=_plain(span.get("attributes")),
        resource=Resource.of(_plain(resource)),
    )


def _id(value: Any) -> str:
    text = value.strip().lower().removeprefix("0x") if isinstance(value, str) else ""
    return text if text.strip("0") else ""


def _time_ns(value: Any) -> int | None:
    if not isinstance(value, str):
        return as_ns(value)
    found = epoch_ns(value)
    return None if found == UNREADABLE else found


def _plain(value: Any) -> dict[str, Any]:
    pairs = _mapping(value).items()
    return {key: one for key, one in pairs if isinstance(one, str | int | float)}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
