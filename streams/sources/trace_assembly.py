"""Holds the spans of traces until no more of them can be waited for.

What is held after a message depends on nothing but the messages from the oldest held trace's first
one on: a trace is let go when a message that came after its last span has a younger time than it
waits for, or when so many spans came after its last one. So a worker that starts to read at
`first_offset` holds what the one before it held (docs/exactly-once.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tailbudget.streams.sources.span import SHARED, Kind, Span

MOST_SPANS: Final = 200_000
"""Spans that come after the last one of a trace before it is judged as it is. A held span takes
about a kilobyte, so that a partition holds a few hundred megabytes at most."""

MOST_OF_TRACE: Final = 10_000
"""Spans of one trace that are kept: more are a loop, or a batch job."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long traces are held.

    Attributes:
        wait_ns: how much younger than the end of a trace a span must be for the trace to be judged;
            None waits for the end of the source.
        most: spans that come after its last one before a trace is judged as it is.
        of_trace: spans of one trace that are kept.
    """

    wait_ns: int | None
    most: int = MOST_SPANS
    of_trace: int = MOST_OF_TRACE


@dataclass(slots=True)
class Held:
    """The spans of one trace so far.

    Attributes:
        spans: by their ids.
        offset: of the message that held the first of them.
        arrival_ns: when the last message with one of them arrived.
        deadline_ns: a younger time lets it go.
        touched: spans of the source up to its last one.
        repeated: spans that came again.
        beyond: spans that were not kept, for it has too many.
        early: it was let go because too much is held.
    """

    offset: int
    arrival_ns: int
    spans: dict[str, Span] = field(default_factory=dict)
    deadline_ns: int = 0
    touched: int = 0
    repeated: int = 0
    beyond: int = 0
    early: bool = False


class TraceAssembly:
    """The traces of one source partition, or of one file, that may still grow.

    Args:
        bounds: how long they are held.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._traces: dict[str, Held] = {}  # the one that was touched longest ago comes first
        self._deadlines: list[tuple[int, str]] = []
        self._spans = 0

    def __len__(self) -> int:
        return len(self._traces)

    @property
    def first_offset(self) -> int | None:
        """Offset of the oldest message that a held span came with; None where none is held."""
        return min((held.offset for held in self._traces.values()), default=None)

    def add(self, spans: Sequence[Span], offset: int, arrival_ns: int, max_ns: int) -> list[Held]:
        """Take the spans of one message; return the traces that are let go.

        Args:
            spans: in any order, of any traces.
            offset: of the message.
            arrival_ns: when it arrived.
            max_ns: a younger span is not believed, and does not move the clock.
        """
        for span in spans:
            self._put(span, offset, arrival_ns)
        times = (span.last_ns for span in spans if span.last_ns <= max_ns)
        return [*self._expired(max(times, default=None)), *self._overdue()]

    def finish(self) -> list[Held]:
        """Let go of all, in the order in which they came."""
        rest = sorted(self._traces.values(), key=lambda held: held.offset)
        self._traces.clear()
        self._deadlines.clear()
        return rest

    def _put(self, span: Span, offset: int, arrival_ns: int) -> None:
        held = self._traces.pop(span.trace, None) or Held(offset, arrival_ns)
        self._traces[span.trace] = held
        self._spans += 1
        held.touched = self._spans
        held.arrival_ns = max(held.arrival_ns, arrival_ns)
        if span.id in held.spans:
            held.repeated += not self._joined(held.spans, span)
        elif len(held.spans) >= self._bounds.of_trace:
            held.beyond += 1
        else:
            held.spans[span.id] = span
        if self._bounds.wait_ns is not None:
            deadline_ns = span.last_ns + self._bounds.wait_ns
            if deadline_ns > held.deadline_ns:
                held.deadline_ns = deadline_ns
                heapq.heappush(self._deadlines, (deadline_ns, span.trace))

    @staticmethod
    def _joined(spans: dict[str, Span], span: Span) -> bool:
        """Join a span to the one of the same id: its end, or the other half of a call."""
        before = spans[span.id]
        halves = {before.kind: before, span.kind: span}
        if halves.keys() == {Kind.CLIENT, Kind.SERVER}:
            spans[span.id] = halves[Kind.CLIENT]
            server = halves[Kind.SERVER]
            shared = replace(server, id=span.id + SHARED, parent=span.id, beyond=server.parent)
            return spans.setdefault(shared.id, shared) is shared
        if before.end_ns is None and span.end_ns is not None:
            spans[span.id] = span
            return True
        return False

    def _expired(self, now_ns: int | None) -> Iterator[Held]:
        while self._deadlines and now_ns is not None and self._deadlines[0][0] < now_ns:
            deadline_ns, trace = heapq.heappop(self._deadlines)
            held = self._traces.get(trace)
            if held is not None and held.deadline_ns == deadline_ns:
                del self._traces[trace]
                yield held

    def _overdue(self) -> Iterator[Held]:
        while self._traces:
            trace, held = next(iter(self._traces.items()))
            if self._spans - held.touched <= self._bounds.most:
                return
            del self._traces[trace]
            held.early = True
            yield held
