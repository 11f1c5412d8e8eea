"""A sliding window over panes: what was measured in the last minute, hour or any span.

Sums run: a new pane is added and an expired one taken back, so that a window costs the same
however long it is. Extremes, floats and thresholds, which do not subtract, are kept by pane and
put together when asked for. All is exact: a window equals the merge of the summaries in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tailbudget.models.cohort_split import CohortTotals
from tailbudget.models.cohort_sums import CohortSums
from tailbudget.models.counts import Counts
from tailbudget.models.service_sums import ServiceSums
from tailbudget.schemas.summary import Summary


class ServiceWindow:
    """The panes of one service that start later than `length_ns` before now, without cohorts.

    Panes that start after now belong to it too: records may be ahead of the clock that `advance`
    follows. A window may have longer panes than the summaries; it then keeps less and slides in
    larger steps. Before the first `advance` it holds everything.

    Args:
        length_ns: a whole number of panes.
        pane_ns: length of a pane, a whole number of the summaries' panes.

    Raises:
        ValueError: the length is not a positive whole number of panes.
    """

    def __init__(self, length_ns: int, pane_ns: int) -> None:
        if pane_ns <= 0 or length_ns <= 0 or length_ns % pane_ns:
            raise ValueError(f"want whole panes of {pane_ns} ns in a window, not {length_ns} ns")
        self._length_ns = length_ns
        self._pane_ns = pane_ns
        self._first_ns: int | None = None
        self._service = ServiceSums()

    @property
    def start_ns(self) -> int:
        """Start of the first pane of the window; before any `advance`, of the first one held."""
        if self._first_ns is not None:
            return self._first_ns
        return min(self._service.panes, default=0)

    @property
    def end_ns(self) -> int:
        """End of the newest pane held, and never before the end of the window at `advance`."""
        end = 0 if self._first_ns is None else self._first_ns + self._length_ns
        return max(end, max(self._service.panes, default=-self._pane_ns) + self._pane_ns)

    def add(self, summary: Summary) -> None:
        """Add what is new: groups of any panes; those that have left the window are ignored."""
        for pane_ns in np.unique(summary.pane_ns).tolist():
            pane = self._pane_of(pane_ns)
            if not self._gone(pane):
                groups = slice(*np.searchsorted(summary.pane_ns, [pane_ns, pane_ns + 1]).tolist())
                self._add(pane, summary, groups)
        for (pane_ns, reason), count in summary.ledger.items():
            pane = self._pane_of(pane_ns)
            if not self._gone(pane):
                self._service.count(pane, reason, count)

    def advance(self, now_ns: int) -> None:
        """Let go of the panes that have left the window by now; time never goes back."""
        first = self._pane_of(now_ns - self._length_ns) + self._pane_ns
        if self._first_ns is not None and first <= self._first_ns:
            return
        self._first_ns = first
        for pane in self._service.panes:
            if not self._gone(pane):
                break
            self.remove(pane)

    def remove(self, pane_ns: int) -> None:
        """Forget a pane, so that it can be added anew when it turns out to hold something else."""
        self._remove(self._pane_of(pane_ns))

    def total(self) -> Summary:
        """Return the window as one group of all cohorts, without moments and sample."""
        return self._service.total(self.start_ns)

    def total_since(self, start_ns: int) -> Summary:
        """Return what starts at `start_ns` or later, likewise."""
        with self._service.since(start_ns):
            return self._service.total(start_ns)

    def counts(self) -> Counts:
        """Return how many requests the window has and how many of them are bad."""
        return self._service.counts()

    @property
    def panes(self) -> tuple[int, ...]:
        """Starts of the panes that hold something, ascending."""
        return self._service.panes

    def _add(self, pane_ns: int, summary: Summary, groups: slice) -> None:
        self._service.add(pane_ns, summary, groups)

    def _remove(self, pane_ns: int) -> None:
        self._service.remove(pane_ns)

    def _pane_of(self, time_ns: int) -> int:
        return time_ns // self._pane_ns * self._pane_ns

    def _gone(self, pane_ns: int) -> bool:
        return self._first_ns is not None and pane_ns < self._first_ns


class Window(ServiceWindow):
    """A window that has the totals of each cohort, too."""

    def __init__(self, length_ns: int, pane_ns: int) -> None:
        super().__init__(length_ns, pane_ns)
        self._cohorts = CohortSums()

    def cohorts(self) -> CohortTotals:
        """Return the totals of each cohort."""
        return self._cohorts.totals()

    @contextmanager
    def until(self, end_ns: int) -> Iterator[None]:
        """Leave out what starts at `end_ns` or later for a while; nothing may be added meanwhile.

        Fast sources run ahead: the audit of a span must not see what came after it.
        """
        with self._service.until(end_ns), self._cohorts.until(end_ns):
            yield

    def _add(self, pane_ns: int, summary: Summary, groups: slice) -> None:
        super()._add(pane_ns, summary, groups)
        self._cohorts.add(pane_ns, summary, groups)

    def _remove(self, pane_ns: int) -> None:
        super()._remove(pane_ns)
        self._cohorts.remove(pane_ns)
