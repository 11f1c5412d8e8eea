"""Time spent in the stages of one request, however they repeat, overlap or nest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from operator import itemgetter
from threading import RLock
from typing import Final

Event = tuple[int, str, bool]
"""When, nanoseconds; which stage; whether it began (else it ended)."""

FOLD_AT: Final = 512
"""Events that a request may hold: beyond, they are added up while it waits, in some 0.1 ms."""

_NS_PER_MS: Final = 1e6
_AT: Final = itemgetter(0)


class Spans:
    """The monotonic clock of one request, from its construction until `freeze`.

    A stage's time is the time during which it was open at least once: repetitions add up, and
    what overlaps counts once. Stages of different names do not know of each other. Any number of
    threads may write: what happens is noted as it comes, and added up when somebody asks.
    What comes after the end is in no figure; a stage that is open at the end lasts until then.
    """

    __slots__ = ("_clock", "_ended_ns", "_events", "_lock", "_started_ns", "_sums")

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._events: list[Event] = []
        self._sums: dict[str, _Sum] = {}
        # Reentrant: the garbage collector may close a generator's stage while we hold it.
        self._lock = RLock()
        self._ended_ns: int | None = None
        self._started_ns = clock()

    def open(self, stage: str) -> None:
        """Begin a stage, once more where it is open already."""
        self._events.append((self._clock(), stage, True))

    def close(self, stage: str) -> None:
        """End a stage; in no figure where it is not open."""
        events = self._events
        events.append((self._clock(), stage, False))
        if len(events) > FOLD_AT:
            self._fold()

    def freeze(self) -> bool:
        """Stop the clock; false when it was stopped before."""
        with self._lock:
            if self._ended_ns is not None:
                return False
            self._ended_ns = self._clock()
            return True

    @property
    def frozen(self) -> bool:
        """Whether the clock was stopped."""
        return self._ended_ns is not None

    @property
    def total_ms(self) -> float:
        """Milliseconds from the beginning until the end, or until now."""
        return (self._end_ns() - self._started_ns) / _NS_PER_MS

    def stage_ms(self) -> dict[str, float]:
        """Return milliseconds by stage; one that is open counts until the end, or until now."""
        with self._lock:
            self._fold()
            end_ns = self._end_ns()
            return {stage: one.until(end_ns) / _NS_PER_MS for stage, one in self._sums.items()}

    def _fold(self) -> None:
        """Add up the events so far; others may append meanwhile."""
        with self._lock:
            events = self._events[:]
            del self._events[: len(events)]
            # A thread may be interrupted between its look at the clock and its note.
            events.sort(key=_AT)
            _add(self._sums, events, self._ended_ns)

    def _end_ns(self) -> int:
        return self._clock() if self._ended_ns is None else self._ended_ns


class _Sum:
    """The union of the intervals of one stage, which come ordered by time."""

    __slots__ = ("covered_ns", "open", "since_ns")

    def __init__(self) -> None:
        self.open = 0
        self.since_ns = 0
        self.covered_ns = 0

    def until(self, end_ns: int) -> int:
        return self.covered_ns + (end_ns - self.since_ns if self.open else 0)


def _add(sums: dict[str, _Sum], events: Iterable[Event], end_ns: int | None) -> None:
    for at_ns, stage, begins in events:
        if end_ns is not None and at_ns > end_ns:
            return
        one = sums.get(stage)
        if one is None:
            one = sums[stage] = _Sum()
        if begins:
            if not one.open:
                one.since_ns = at_ns
            one.open += 1
        elif one.open:
            one.open -= 1
            if not one.open:
                one.covered_ns += at_ns - one.since_ns
