"""From what the formats of OpenTelemetry tell of a span to ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tailbudget.streams.sources.engine_latency import first_token_s, parts_s
from tailbudget.streams.sources.span import Kind, Span
from tailbudget.streams.sources.timetext import LIMIT
from tailbudget.streams.sources.trace_facts import Resource, facts, operation

_KINDS: Final = (Kind.INTERNAL, Kind.INTERNAL, Kind.SERVER, Kind.CLIENT, Kind.PRODUCER,
                 Kind.CONSUMER)  # fmt: skip
_LONGEST_ID: Final = 64
_NS_PER_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Raw:
    """What is told of a span; ids are hexadecimal, empty where they are not told.

    Attributes:
        trace: id of its trace.
        id: its own.
        parent: of the span that caused it.
        name: as it was given.
        kind: what it is to its parent.
        start_ns: nanoseconds since the epoch; None where it is no time.
        end_ns: likewise.
        failed: its status says so.
        attributes: of the span, plain values only.
        resource: of the process.
    """

    trace: str
    id: str
    parent: str
    name: str
    kind: Kind
    start_ns: int | None
    end_ns: int | None
    failed: bool
    attributes: Mapping[str, Any]
    resource: Resource


def span_of(raw: Raw) -> Span | None:
    """Return the span; None where it has no ids or no start, so that it is no span."""
    if not raw.trace or not raw.id or raw.start_ns is None:
        return None
    length_s = ((raw.end_ns or raw.start_ns) - raw.start_ns) / _NS_PER_S
    told = facts(raw.attributes, raw.resource, failed=raw.failed)
    first_s = first_token_s(raw.attributes, length_s)
    if first_s is not None:
        told["ttft_ms"] = first_s * 1e3
    return Span(
        trace=raw.trace[:_LONGEST_ID],
        id=raw.id[:_LONGEST_ID],
        parent=raw.parent[:_LONGEST_ID],
        name=operation(raw.name, raw.attributes),
        kind=raw.kind,
        service=raw.resource.service,
        start_ns=raw.start_ns,
        end_ns=raw.end_ns,
        facts=told,
        parts_s=parts_s(raw.attributes, length_s),
    )


def kind_of(value: Any) -> Kind:
    """Return the kind of a number or a name; one that is not known is internal."""
    if isinstance(value, str):
        word = value.rpartition("_")[2].rpartition(".")[2].lower()
        return next((kind for kind in Kind if kind.value == word), Kind.INTERNAL)
    if isinstance(value, int) and 0 <= value < len(_KINDS):
        return _KINDS[value]
    return Kind.INTERNAL


def as_ns(value: Any) -> int | None:
    """Return nanoseconds since the epoch of a number or of its digits; None for 0 and others."""
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= 19 else 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < LIMIT:
        return None
    return value
