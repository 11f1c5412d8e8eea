"""What one objective has counted: panes for its burn rates, coarser slices for its period."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from tailbudget.models.burn import rules_of
from tailbudget.models.slo_counts import SloCounts
from tailbudget.models.slo_window import SECOND_NS, length_s, span_at
from tailbudget.models.tally import as_slices, between, count, merge_tallies, with_newer
from tailbudget.schemas.objectives import Objective
from tailbudget.schemas.tally import Count, Tally

MOST_SLICES: Final = 43_200
"""Slices that a period is kept in: the minutes of 30 days. A year has slices of 13 minutes."""

MINUTE_S: Final = 60


class Range(NamedTuple):
    """What to read back: [since_ns, until_ns) in slices of so many seconds."""

    since_ns: int
    until_ns: int
    slice_s: int


class SloSeries:
    """Counts of one objective.

    Args:
        objective: what counts.
        pane_s: length of a pane.

    Attributes:
        objective: what counts.
        pane_ns: length of a pane.
        slice_ns: length of the slices of the period.
    """

    def __init__(self, objective: Objective, pane_s: int) -> None:
        self.objective = objective
        self.pane_ns = pane_s * SECOND_NS
        period_s = length_s(objective.period)
        longest_s = max(rule.long_s for rule in rules_of(objective))
        minutes = -(-period_s // (MOST_SLICES * MINUTE_S))
        slice_s = objective.slice_s or max(minutes, 1) * MINUTE_S
        self.slice_ns = slice_s * SECOND_NS
        # A calendar month has a day more than 30, a year one more than 365, and days an hour.
        self._period = SloCounts(
            self.slice_ns, period_s * 32 // 30 // slice_s + 3600 // slice_s + 2
        )
        self._panes = SloCounts(self.pane_ns, -(-longest_s // pane_s) + 1)

    def add(self, counted: Tally) -> None:
        """Add events in slices of a pane."""
        self._panes.add(counted)
        self._period.add(merge_tallies([counted], self.slice_ns))

    def restore(self, counted: Tally) -> None:
        """Add what was read back for one of `wanted`."""
        if counted.slice_ns == self.pane_ns:
            self._panes.add(counted)
        if counted.slice_ns == self.slice_ns:
            self._period.add(counted)

    def wanted(self, now_ns: int) -> Iterator[Range]:
        """Yield what to read from ClickHouse before the first `add`, for a judgement at a time."""
        end_ns = now_ns + self.slice_ns
        longest_s = max(rule.long_s for rule in rules_of(self.objective))
        start_ns = span_at(self.objective.period, now_ns).start_ns
        yield Range(start_ns, end_ns, self.slice_ns // SECOND_NS)
        if self.pane_ns != self.slice_ns:
            yield Range(now_ns - longest_s * SECOND_NS, end_ns, self.pane_ns // SECOND_NS)

    def period_tally(self) -> Tally:
        """Return all that is held, in the slices of the period."""
        return self._period.between(0, 2**62)

    @property
    def first_ns(self) -> int | None:
        """Start of the first slice ever that had events."""
        return self._period.first_ns

    def at(self, now_ns: int, newest: Tally) -> View:
        """Return the counts as of a time, with newer events in slices of a pane on top."""
        return View(self, self._panes, now_ns, newest)


@dataclass(frozen=True, slots=True)
class View:
    """Counts of an objective as of a time.

    Attributes:
        series: what was counted for good.
        panes: its counts by pane.
        now_ns: the time.
        newest: newer events on top, in slices of a pane.
    """

    series: SloSeries
    panes: SloCounts
    now_ns: int
    newest: Tally

    def count(self, seconds: int) -> Count:
        """Return the events of a window that ends now: requests, or slices that are over."""
        if self.series.objective.slice_s is not None:
            return self._slices(seconds)
        if not len(self.newest.start_ns):
            return self.panes.last(self.now_ns, seconds * SECOND_NS)
        pane_ns = self.series.pane_ns
        end = self.now_ns // pane_ns + 1
        start = end - max(seconds * SECOND_NS // pane_ns, 1)
        ahead = count(between(self.newest, start * pane_ns, end * pane_ns))
        return self.panes.last(self.now_ns, seconds * SECOND_NS) + ahead

    def silent_s(self) -> float | None:
        """Return how long ago the newest event was; None when there never was one."""
        known = [self.panes.newest_before(self.now_ns)]
        if held := between(self.newest, 0, self.now_ns + 1).start_ns.tolist():
            known.append(held[-1] + self.series.pane_ns)
        ends = [end for end in known if end is not None]
        return max(self.now_ns - max(ends), 0) / SECOND_NS if ends else None

    def age_s(self) -> float | None:
        """Return how long ago the first event was; None when there never was one."""
        known = [self.series.first_ns, *self.newest.start_ns[:1].tolist()]
        firsts = [first for first in known if first is not None]
        return max(self.now_ns - min(firsts), 0) / SECOND_NS if firsts else None

    def period(self) -> Tally:
        """Return all that is held with the newer events, in the slices of the period."""
        return with_newer(self.series.period_tally(), self.newest)

    def _slices(self, seconds: int) -> Count:
        open_ns = self.now_ns - self.now_ns % self.series.slice_ns
        length_ns = max(seconds * SECOND_NS, self.series.slice_ns)
        inside = between(self.period(), open_ns - length_ns, open_ns)
        return count(as_slices(inside, self.series.objective.slice_target))
