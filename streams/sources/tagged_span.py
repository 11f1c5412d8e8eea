"""From what Jaeger and Zipkin tell of a span, microseconds and tags, to ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tailbudget.streams.sources.span import SHARED, Kind, Span
from tailbudget.streams.sources.timetext import LIMIT
from tailbudget.streams.sources.trace_facts import Resource, facts, operation

_NS_PER_US: Final = 1_000
_LONGEST_ID: Final = 64
_SHORT_ID: Final = 16


@dataclass(frozen=True, slots=True)
class Tagged:
    """What is told of a span.

    Attributes:
        trace: id of its trace.
        id: its own.
        name: of the operation.
        kind: what it is to its parent.
        service: that it ran in.
        start_us: microseconds since the epoch, whatever was found for them.
        duration_us: likewise; None where none is told.
        tags: of the span.
        process: tags of the process.
        parent: id of the span that caused it; empty where none did.
        shared: it is the server's half of a call, and the client's half has the same id.
        awaited: False where its parent is said not to wait for it.
    """

    trace: Any
    id: Any
    name: Any
    kind: Kind
    service: Any
    start_us: Any
    duration_us: Any
    tags: Mapping[str, Any]
    process: Mapping[str, Any] = field(default_factory=dict)
    parent: str = ""
    shared: bool = False
    awaited: bool = True


def span_of(tagged: Tagged) -> Span | None:
    """Return the span; None where it has no ids or no start, so that it is no span."""
    trace, own, start_ns = id_of(tagged.trace), id_of(tagged.id), _ns(tagged.start_us)
    if not trace or not own or start_ns is None or start_ns <= 0:
        return None
    length_ns = _ns(tagged.duration_us)
    name = tagged.name if isinstance(tagged.name, str) else ""
    process = Resource.of(tagged.process, tagged.service)
    return Span(
        trace=trace,
        id=own + SHARED if tagged.shared else own,
        parent=own if tagged.shared else tagged.parent,
        name=operation(name, tagged.tags),
        kind=tagged.kind,
        service=process.service,
        start_ns=start_ns,
        end_ns=None if length_ns is None else start_ns + length_ns,
        beyond=tagged.parent if tagged.shared else "",
        awaited=tagged.awaited,
        facts=facts(tagged.tags, process, failed=_is_error(tagged.tags.get("error"))),
    )


def id_of(value: Any) -> str:
    """Return an id as it is compared: of 16 or 32 digits, for some clients drop leading zeros."""
    text = str(value).strip().lower() if isinstance(value, str | int) else ""
    text = text.lstrip("0")[:_LONGEST_ID]
    return text.zfill(_SHORT_ID if len(text) <= _SHORT_ID else 2 * _SHORT_ID) if text else ""


def kind_of(value: Any) -> Kind:
    """Return the kind that a word names; what is none is internal."""
    word = value.lower() if isinstance(value, str) else ""
    return next((kind for kind in Kind if kind.value == word), Kind.INTERNAL)


def _is_error(tag: Any) -> bool:
    """Return whether an error tag says that there was one: Zipkin's holds a text, if any."""
    return tag is not None and tag is not False and str(tag).lower() not in {"false", "0"}


def _ns(microseconds: Any) -> int | None:
    if isinstance(microseconds, str):
        microseconds = int(microseconds) if microseconds.isdecimal() else None
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        return None
    if not abs(microseconds) < LIMIT // _NS_PER_US:
        return None
    return round(microseconds * _NS_PER_US)
