"""Traces of Jaeger: what its query service and its page give, and a span of a Kafka topic.

Durations and times are microseconds. In Kafka, Jaeger 1 with `--kafka.producer.encoding=json`
writes one span a message, in the JSON of protocol buffers: ids are base64, the duration is a text
such as "0.004311s". Without that option it writes protocol buffers (`jaeger_binary`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tailbudget.streams.sources.jaeger_binary import span_object
from tailbudget.streams.sources.proto_messages import is_binary
from tailbudget.streams.sources.span import Span
from tailbudget.streams.sources.tagged_span import Tagged, id_of, kind_of, span_of
from tailbudget.streams.sources.timetext import UNREADABLE, epoch_ns
from tailbudget.streams.sources.traces import TraceDecoder
from tailbudget.streams.sources.translated import NotOfFormatError, objects, read_json

_NS_PER_US: Final = 1e3
_US_PER_S: Final = 1e6
_SECONDS: Final = re.compile(r"(\d{1,9}(?:\.\d+)?)s")
_VALUES: Final = ("value", "vStr", "vInt64", "vFloat64", "vBool")
_CHILD: Final = "CHILD_OF"


class JaegerDecoder(TraceDecoder):
    """Decodes Jaeger's traces; see the package docstring for what it promises."""

    name = "jaeger"

    @staticmethod
    def spans_of(value: bytes) -> Iterable[Span | None]:
        """Return the spans of a message: of an answer of the query service, a trace, or a span."""
        found = [span_object(value)] if is_binary(value) else _objects(read_json(value))
        return [span for one in found for span in _spans(one)]


def _objects(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, dict) and isinstance(found.get("data"), list):
        found = found["data"]
    every = found if isinstance(found, list) else [found]
    if not all(isinstance(one, dict) for one in every):
        raise NotOfFormatError("no trace, and no span")
    return every


def _spans(one: Mapping[str, Any]) -> Iterator[Span | None]:
    if isinstance(one.get("spans"), list):
        processes = one.get("processes")
        for span in one["spans"]:
            if isinstance(span, dict):
                yield _span(span, processes if isinstance(processes, dict) else {})
            else:
                yield None
    elif "operationName" in one:
        yield _span(one, {})
    else:
        raise NotOfFormatError("no trace, and no span: it has neither spans nor operationName")


def _span(span: Mapping[str, Any], processes: Mapping[str, Any]) -> Span | None:
    process = span.get("process") or processes.get(str(span.get("processID")))
    process = process if isinstance(process, dict) else {}
    tags = _tags(span.get("tags"))
    coded = "spanId" in span
    parent, awaited = _parent(span, coded=coded)
    return span_of(
        Tagged(
            trace=_id(span.get("traceId"), coded=True) if coded else span.get("traceID"),
            id=_id(span.get("spanId"), coded=True) if coded else span.get("spanID"),
            name=span.get("operationName"),
            kind=kind_of(tags.get("span.kind")),
            service=process.get("serviceName"),
            start_us=_start_us(span.get("startTime")),
            duration_us=_duration_us(span.get("duration")),
            tags=tags,
            process=_tags(process.get("tags")),
            parent=parent,
            awaited=awaited,
        )
    )


def _parent(span: Mapping[str, Any], *, coded: bool) -> tuple[str, bool]:
    """Return the parent, and whether it waits: of several references one of a child comes first."""
    found = objects(span.get("references"))
    found.sort(key=lambda one: one.get("refType", _CHILD) != _CHILD)
    for one in found:
        parent = id_of(_id(one.get("spanId" if coded else "spanID"), coded=coded))
        if parent:
            return parent, one.get("refType", _CHILD) == _CHILD
    return id_of(span.get("parentSpanID")), True


def _id(value: Any, *, coded: bool) -> str:
    if not coded or not isinstance(value, str):
        return value if isinstance(value, str) else ""
    try:
        return base64.b64decode(value, validate=True).hex()
    except (binascii.Error, ValueError):
        return value


def _tags(pairs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs if isinstance(pairs, list) else []:
        if isinstance(pair, dict) and isinstance(pair.get("key"), str):
            value = next((pair[name] for name in _VALUES if name in pair), None)
            if isinstance(value, str | int | float):
                found[pair["key"]] = value
    return found


def _start_us(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    ns = epoch_ns(value)
    return None if ns == UNREADABLE else ns / _NS_PER_US


def _duration_us(value: Any) -> Any:
    found = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    return value if found is None else float(found[1]) * _US_PER_S
