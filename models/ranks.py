"""Nearest ranks over one group of a summary: from a rank to milliseconds, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sample import NO_LIMIT
from tailbudget.models.sketch import bucket_index, nearest_rank, representative
from tailbudget.schemas.summary import TOTAL, Summary

EVIDENCE: Final = 10
"""Requests wanted beyond a percentile before it is judged."""


def requests_needed(quantile: Fraction) -> int:
    """Return how many requests a percentile takes: ten are then expected beyond it."""
    return math.ceil(EVIDENCE / (1 - quantile))


@dataclass(frozen=True, slots=True)
class Ranks:
    """The sketch of one stage of a summary that has one group.

    Attributes:
        bucket: [K] sketch buckets, ascending.
        cumulated: [K] values in this bucket and below.
        n: values.
        min_ms: smallest value; +inf when n is 0.
        max_ms: largest value; -inf when n is 0.
        slower: exact counts of values slower than a threshold, by threshold.
        exact_ms: [n] the values themselves, ascending, where the sample has every one; else None.
    """

    bucket: NDArray[np.int16]
    cumulated: NDArray[np.int64]
    n: int
    min_ms: float
    max_ms: float
    slower: dict[float, int]
    exact_ms: NDArray[np.float64] | None = None

    def value_ms(self, rank: int) -> float | None:
        """Return the value at a rank (1 is the smallest); None outside of 1 to n.

        It is exact where the sample has every value. Else the sketch's answer is moved to where
        the exact counters know it to be, so that no value reads as within a target that it misses,
        or the other way round.
        """
        if not 1 <= rank <= self.n:
            return None
        if self.exact_ms is not None:
            return float(self.exact_ms[rank - 1])
        found = self.bucket[np.searchsorted(self.cumulated, rank)]
        value = float(np.clip(representative(found), self.min_ms, self.max_ms))
        beyond = self.n - rank
        for threshold, slower in sorted(self.slower.items()):
            if slower <= beyond:
                return min(value, threshold)
            if value <= threshold:
                value = min((threshold + _upper_edge(threshold)) / 2, self.max_ms)
        return value

    def quantile_ms(self, quantile: Fraction) -> float | None:
        """Return the nearest-rank quantile; None when there are no values."""
        return self.value_ms(nearest_rank(self.n, quantile))

    def slower_than(self, threshold_ms: float) -> int:
        """Return how many values are slower: exact where counted, else read off the sketch."""
        if threshold_ms in self.slower:
            return self.slower[threshold_ms]
        if not len(self.bucket) or threshold_ms >= self.max_ms:
            return 0
        if self.exact_ms is not None:
            return self.n - int(np.searchsorted(self.exact_ms, threshold_ms, side="right"))
        below = int(np.searchsorted(representative(self.bucket), threshold_ms, side="right"))
        return self.n - (int(self.cumulated[below - 1]) if below else 0)


def ranks(summary: Summary, stage: str = TOTAL) -> Ranks:
    """Return the ranks of a stage; only the total has exact counters.

    Raises:
        ValueError: the summary has not exactly one group, or lacks the stage.
    """
    if len(summary.cohorts) != 1:
        raise ValueError(f"want a summary of one group, not of {len(summary.cohorts)}")
    s = summary.stages.index(stage)
    first, end = np.searchsorted(summary.cell, [s, s + 1])
    slower = {}
    if stage == TOTAL:
        failed = int(summary.failed[0])
        pairs = zip(summary.thresholds_ms, summary.over[0].tolist(), strict=True)
        slower = {threshold: over - failed for threshold, over in pairs}
    n = int(summary.n[0, s])
    return Ranks(
        bucket=summary.bucket[first:end],
        cumulated=np.cumsum(summary.count[first:end]),
        n=n,
        min_ms=float(summary.min_ms[0, s]),
        max_ms=float(summary.max_ms[0, s]),
        slower=slower,
        exact_ms=_every_value(summary, s, n),
    )


def _every_value(summary: Summary, stage: int, n: int) -> NDArray[np.float64] | None:
    """Return the n values of a stage, ascending; None where the sample lacks any of them."""
    if (summary.sample.tau != NO_LIMIT).any():
        return None
    values = summary.sample.values[:, stage]
    values = np.sort(values[~np.isnan(values)])
    return values if len(values) == n else None


def _upper_edge(value_ms: float) -> float:
    """Return where the sketch bucket of a value ends."""
    middle = float(representative(bucket_index(np.array([value_ms]))[0]))
    return middle + math.ldexp(0.5, math.frexp(middle)[1] - 7)
