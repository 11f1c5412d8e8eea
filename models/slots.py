"""A timeline as columns: requests and latency of each slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sketch import BUCKETS, representative
from tailbudget.schemas.summary import TOTAL, Summary

_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots of one timeline that have requests, ascending.

    Attributes:
        start_ns: [T] start of each.
        requests: [T] failures included.
        n: [T] successes.
        sum_ms: [T] latency of the successes, added up.
        max_ms: [T] the slowest success; -inf without any.
        bucket: [K] sketch buckets that occur.
        count: [T, K] successes by bucket.
    """

    start_ns: NDArray[np.int64]
    requests: NDArray[np.int64]
    n: NDArray[np.int64]
    sum_ms: NDArray[np.float64]
    max_ms: NDArray[np.float64]
    bucket: NDArray[np.int64]
    count: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.start_ns)

    def quantile_ms(self, at: Sequence[int] | NDArray[np.intp], q: float) -> float | None:
        """Return a nearest-rank quantile of the successes of some slots; None without any."""
        counts = self.count[at].sum(axis=0)
        below = np.cumsum(counts)
        if not len(below) or not below[-1]:
            return None
        rank = max(int(np.ceil(below[-1] * q)), 1)
        found = representative(self.bucket[[int(np.searchsorted(below, rank))]])
        return float(found[0])

    def slower(self, limit_ms: float) -> NDArray[np.int64]:
        """Return [T] how many successes are slower than a limit, by the middle of their bucket."""
        slow: NDArray[np.int64] = self.count[:, representative(self.bucket) > limit_ms].sum(axis=1)
        return slow


def slots_of(summary: Summary, groups: NDArray[np.intp] | None = None) -> Slots:
    """Return the slots of a timeline, or of some of its groups: one group a slot, ascending."""
    at = np.arange(len(summary.pane_ns)) if groups is None else groups
    stages, total = len(summary.stages), summary.stages.index(TOTAL)
    row = np.full(len(summary.pane_ns), -1, np.int64)
    row[at] = np.arange(len(at))
    group, stage = np.divmod(summary.cell, stages)
    mine = np.flatnonzero((stage == total) & (row[group] >= 0))
    used = np.zeros(BUCKETS, np.bool_)
    used[summary.bucket[mine]] = True
    bucket = np.flatnonzero(used)
    column = np.cumsum(used) - 1
    count = np.zeros((len(at), len(bucket)), np.int64)
    count[row[group[mine]], column[summary.bucket[mine]]] = summary.count[mine]
    return Slots(
        start_ns=summary.pane_ns[at],
        requests=summary.requests[at],
        n=summary.n[at, total],
        sum_ms=summary.sum_ns[at, total] / _NS_PER_MS,
        max_ms=summary.max_ms[at, total],
        bucket=bucket.astype(np.int64),
        count=count,
    )
