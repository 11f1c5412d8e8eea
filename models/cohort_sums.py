"""The sums of each cohort over a set of panes: counts and the sketch of the total."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.cohort_split import CohortTotals
from tailbudget.models.running import RunningSums, left_out
from tailbudget.models.sketch import BUCKETS, bucket_index
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.summary import TOTAL, Summary

_REQUESTS: Final = BUCKETS
_FAILED: Final = BUCKETS + 1
_WIDTH: Final = BUCKETS + 2


@dataclass(slots=True)
class _Extremes:
    """Fastest and slowest success of each cohort of a pane; they do not subtract.

    Attributes:
        row: [R] distinct rows of the table.
        min_ms: [R] fastest.
        max_ms: [R] slowest.
    """

    row: NDArray[np.int64]
    min_ms: NDArray[np.float64]
    max_ms: NDArray[np.float64]


class CohortSums:
    """Running sums of every cohort; a cohort whose last pane is taken back gives up its row."""

    def __init__(self) -> None:
        self._running = RunningSums(_WIDTH)
        self._row: dict[Cohort, int] = {}
        self._free: list[int] = []
        self._panes: dict[int, _Extremes] = {}

    def add(self, pane_ns: int, summary: Summary, groups: slice) -> None:
        """Add consecutive groups of a summary, of distinct cohorts, to a pane."""
        # A cohort without requests would have a row that nothing frees.
        at = np.flatnonzero(summary.requests[groups]) + groups.start
        row = np.array([self._row_of(summary.cohorts[g]) for g in at.tolist()], np.int64)
        self._running.grow(len(self._row) + len(self._free))
        key, value = _entries(summary, at, row)
        self._running.add(pane_ns, key, value)
        total = summary.stages.index(TOTAL)
        fresh = _Extremes(row, summary.min_ms[at, total], summary.max_ms[at, total])
        before = self._panes.get(pane_ns)
        self._panes[pane_ns] = fresh if before is None else _widest(before, fresh)

    def remove(self, pane_ns: int) -> None:
        """Take a pane back."""
        self._running.remove(pane_ns)
        pane = self._panes.pop(pane_ns, None)
        if pane is None:
            return
        empty = set(pane.row[self._running.table[pane.row, _REQUESTS] == 0].tolist())
        if empty:
            self._free += empty
            self._row = {cohort: row for cohort, row in self._row.items() if row not in empty}

    def until(self, end_ns: int) -> AbstractContextManager[None]:
        """Leave out the panes that start at `end_ns` or later for a while."""
        return left_out(self._panes, self._running, [at for at in self._panes if at >= end_ns])

    def totals(self) -> CohortTotals:
        """Return the totals of every cohort that has requests in the panes."""
        row = np.array(list(self._row.values()), np.int64)
        table = self._running.table
        low, high = np.full(len(table), np.inf), np.full(len(table), -np.inf)
        for pane in self._panes.values():
            low[pane.row] = np.minimum(low[pane.row], pane.min_ms)
            high[pane.row] = np.maximum(high[pane.row], pane.max_ms)
        first, end = _used_buckets(low[row], high[row])
        return CohortTotals(
            cohorts=tuple(self._row),
            requests=table[row, _REQUESTS],
            failed=table[row, _FAILED],
            first_bucket=first,
            counts=table[row, first:end],
            min_ms=low[row],
            max_ms=high[row],
        )

    def _row_of(self, cohort: Cohort) -> int:
        row = self._row.get(cohort)
        if row is None:
            row = self._free.pop() if self._free else len(self._row)
            self._row[cohort] = row
        return row


def _entries(
    summary: Summary, at: NDArray[np.int64], row: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys and values that some groups add to the table, each key once."""
    stages = len(summary.stages)
    row_of_cell = np.full(len(summary.cohorts) * stages, -1, np.int64)
    row_of_cell[at * stages + summary.stages.index(TOTAL)] = row
    cell_row = row_of_cell[summary.cell]
    mine = np.flatnonzero(cell_row >= 0)
    cell_row = cell_row[mine]
    bad = summary.failed[at] > 0
    key = (
        cell_row * _WIDTH + summary.bucket[mine],
        row * _WIDTH + _REQUESTS,
        row[bad] * _WIDTH + _FAILED,
    )
    value = (summary.count[mine], summary.requests[at], summary.failed[at][bad])
    return np.concatenate(key), np.concatenate(value)


def _widest(before: _Extremes, fresh: _Extremes) -> _Extremes:
    """Return the extremes of both."""
    row, at = np.unique(np.concatenate([before.row, fresh.row]), return_inverse=True)
    low, high = np.full(len(row), np.inf), np.full(len(row), -np.inf)
    np.minimum.at(low, at, np.concatenate([before.min_ms, fresh.min_ms]))
    np.maximum.at(high, at, np.concatenate([before.max_ms, fresh.max_ms]))
    return _Extremes(row, low, high)


def _used_buckets(low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[int, int]:
    """Return the first bucket that any cohort uses and the one after the last."""
    if not len(low) or low.min() > high.max():
        return 0, 1
    first, last = bucket_index(np.array([low.min(), high.max()])).tolist()
    return first, last + 1
