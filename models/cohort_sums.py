"""The sums of each cohort over a set of panes: counts and the sketch of the total."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.cohort_split import CohortTotals
from tailbudget.models.running import SparseSums, left_out
from tailbudget.models.sketch import BUCKETS, bucket_index
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.summary import TOTAL, Summary


@dataclass(slots=True)
class _Pane:
    """What a pane has of each of its cohorts, beside the sketch.

    Attributes:
        row: [R] distinct numbers of cohorts, ascending.
        requests: [R] requests.
        failed: [R] of them failed.
        min_ms: [R] fastest success.
        max_ms: [R] slowest.
    """

    row: NDArray[np.int64]
    requests: NDArray[np.int64]
    failed: NDArray[np.int64]
    min_ms: NDArray[np.float64]
    max_ms: NDArray[np.float64]


class CohortSums:
    """The sums of every cohort, pane by pane; they are added up only when asked for.

    A cohort whose last pane is taken back gives up its row.
    """

    def __init__(self) -> None:
        self._cells = SparseSums()
        self._row: dict[Cohort, int] = {}
        self._free: list[int] = []
        self._panes: dict[int, _Pane] = {}
        self._uses = np.zeros(0, np.int64)  # panes that each row occurs in

    def add(self, pane_ns: int, summary: Summary, groups: slice) -> None:
        """Add consecutive groups of a summary, of distinct cohorts, to a pane."""
        # A cohort without requests would have a row that nothing frees.
        at = np.flatnonzero(summary.requests[groups]) + groups.start
        row = np.array([self._row_of(summary.cohorts[g]) for g in at.tolist()], np.int64)
        self._cells.add(pane_ns, *_entries(summary, at, row))
        fresh = _pane(summary, at, row)
        before = self._panes.get(pane_ns)
        after = fresh if before is None else _sum(before, fresh)
        self._use(after.row, 1)
        if before is not None:
            self._use(before.row, -1)
        self._panes[pane_ns] = after

    def remove(self, pane_ns: int) -> None:
        """Take a pane back."""
        self._cells.remove(pane_ns)
        pane = self._panes.pop(pane_ns, None)
        if pane is None:
            return
        self._use(pane.row, -1)
        empty = set(pane.row[self._uses[pane.row] == 0].tolist())
        if empty:
            self._free += empty
            self._row = {cohort: row for cohort, row in self._row.items() if row not in empty}

    @contextmanager
    def until(self, end_ns: int) -> Iterator[None]:
        """Leave out the panes that start at `end_ns` or later for a while."""
        with left_out(self._panes, [at for at in self._panes if at >= end_ns]):
            yield

    def totals(self) -> CohortTotals:
        """Return the totals of every cohort that has requests in the panes."""
        rows = len(self._row) + len(self._free)
        requests, failed = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        low, high = np.full(rows, np.inf), np.full(rows, -np.inf)
        for pane in self._panes.values():
            requests[pane.row] += pane.requests
            failed[pane.row] += pane.failed
            low[pane.row] = np.minimum(low[pane.row], pane.min_ms)
            high[pane.row] = np.maximum(high[pane.row], pane.max_ms)
        first, end = _used_buckets(low, high)
        counts = self._counts(rows, first, end)
        row = np.array(list(self._row.values()), np.int64)
        return CohortTotals(
            cohorts=tuple(self._row),
            requests=requests[row],
            failed=failed[row],
            first_bucket=first,
            counts=counts[row],
            min_ms=low[row],
            max_ms=high[row],
        )

    def _counts(self, rows: int, first: int, end: int) -> NDArray[np.int64]:
        """Add up the sketches, [rows, end - first]; no cell is outside of these buckets."""
        width = end - first
        table = np.zeros(rows * width, np.int64)
        for chunk in self._cells.of(self._panes):
            row, bucket = np.divmod(chunk.key, BUCKETS)
            table[row * width + (bucket - first)] += chunk.value
        return table.reshape(rows, width)

    def _use(self, row: NDArray[np.int64], panes: int) -> None:
        more = len(self._row) + len(self._free) - len(self._uses)
        if more > 0:
            self._uses = np.append(self._uses, np.zeros(more, np.int64))
        self._uses[row] += panes

    def _row_of(self, cohort: Cohort) -> int:
        row = self._row.get(cohort)
        if row is None:
            row = self._free.pop() if self._free else len(self._row)
            self._row[cohort] = row
        return row


def _entries(
    summary: Summary, at: NDArray[np.int64], row: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys row * BUCKETS + bucket and values of some groups' totals, each key once."""
    stages = len(summary.stages)
    row_of_cell = np.full(len(summary.cohorts) * stages, -1, np.int64)
    row_of_cell[at * stages + summary.stages.index(TOTAL)] = row
    cell_row = row_of_cell[summary.cell]
    mine = np.flatnonzero(cell_row >= 0)
    return cell_row[mine] * BUCKETS + summary.bucket[mine], summary.count[mine]


def _pane(summary: Summary, at: NDArray[np.int64], row: NDArray[np.int64]) -> _Pane:
    order = np.argsort(row)
    row, at = row[order], at[order]
    total = summary.stages.index(TOTAL)
    return _Pane(
        row,
        summary.requests[at],
        summary.failed[at],
        summary.min_ms[at, total],
        summary.max_ms[at, total],
    )


def _sum(before: _Pane, fresh: _Pane) -> _Pane:
    """Return both panes as one."""
    row, at = np.unique(np.concatenate([before.row, fresh.row]), return_inverse=True)
    old, new = at[: len(before.row)], at[len(before.row) :]
    requests, failed = np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
    low, high = np.full(len(row), np.inf), np.full(len(row), -np.inf)
    for part, where in ((before, old), (fresh, new)):
        requests[where] += part.requests
        failed[where] += part.failed
        low[where] = np.minimum(low[where], part.min_ms)
        high[where] = np.maximum(high[where], part.max_ms)
    return _Pane(row, requests, failed, low, high)


def _used_buckets(low: NDArray[np.float64], high: NDArray[np.float64]) -> tuple[int, int]:
    """Return the first bucket that any cohort uses and the one after the last."""
    if not len(low) or low.min() > high.max():
        return 0, 1
    first, last = bucket_index(np.array([low.min(), high.max()])).tolist()
    return first, last + 1
