"""A span of a trace, whatever format it came in: names and numbers, never texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final


class Kind(Enum):
    """What a span is to the one that it was called by, as OpenTelemetry and Zipkin tell."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"

    @property
    def enters(self) -> bool:
        """Whether such a span begins what its service does for somebody else."""
        return self in {Kind.SERVER, Kind.CONSUMER}


SHARED: Final = "/server"
"""Ends the id of a server's half of a call, where its client's half has the same id (Zipkin)."""


@dataclass(frozen=True, slots=True)
class Span:
    """One span.

    Attributes:
        trace: id of its trace.
        id: its own id, unique in the trace.
        parent: id of the span that caused it; empty where none did.
        name: of the operation, ids in it left out.
        kind: what it is to its parent.
        service: that it ran in; None where it is not told.
        start_ns: nanoseconds since the epoch.
        end_ns: likewise; None where it never ended, or does not say.
        beyond: id of what is above the parent, where the parent is the caller's half of the same
            call and may not have been reported; empty where it is not told.
        awaited: False where its parent is said not to wait for it.
        facts: columns of a record that its attributes tell, such as route and status.
        parts_s: seconds of its parts, one after another from its start, where it tells them.
    """

    trace: str
    id: str
    parent: str
    name: str
    kind: Kind
    service: str | None
    start_ns: int
    end_ns: int | None
    beyond: str = ""
    awaited: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)
    parts_s: tuple[tuple[str, float], ...] = ()

    @property
    def last_ns(self) -> int:
        """The last time that is known of it."""
        return self.start_ns if self.end_ns is None else max(self.start_ns, self.end_ns)
