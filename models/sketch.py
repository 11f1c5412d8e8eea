"""The quantile sketch: a histogram whose buckets are read off the bits of a float64.

64 buckets an octave from 2^-10 to 2^20 ms. The exponent and the first six bits of the mantissa
are the bucket, so that a value lies within 1/128 (0.78125 %) of the middle of its bucket, and any
two sketches merge by adding counts. Values outside the range go to the end buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.summary import Summary

LOWEST_MS: Final = 2.0**-10
HIGHEST_MS: Final = 2.0**20
OCTAVES: Final = 30
BUCKETS: Final = 64 * OCTAVES
RELATIVE_ERROR: Final = 1 / 128

_SHIFT: Final = 46  # 52 bits of mantissa, of which six choose the bucket
_BASE: Final = (1023 - 10) << 6  # what the bits of LOWEST_MS give


def bucket_index(values_ms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bucket of each value; NaN has none and must be left out before."""
    index = np.ascontiguousarray(values_ms).view(np.int64) >> _SHIFT
    index -= _BASE
    return np.clip(index, 0, BUCKETS - 1, out=index)


def representative(bucket: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the middle of each bucket, in milliseconds."""
    bits = ((bucket.astype(np.int64) + _BASE) << _SHIFT) | (1 << (_SHIFT - 1))
    return bits.view(np.float64)


def nearest_rank(n: int, q: Fraction | float) -> int:
    """Return the rank max(ceil(n q), 1), in whole numbers: a float q means its shortest decimal."""
    exact = q if isinstance(q, Fraction) else Fraction(str(float(q)))
    return max(-(-n * exact.numerator // exact.denominator), 1)


def quantiles(
    bucket: NDArray[np.integer],
    count: NDArray[np.int64],
    qs: Sequence[Fraction | float],
    min_ms: float,
    max_ms: float,
) -> NDArray[np.float64]:
    """Return the nearest-rank quantiles of one sketch, within [min_ms, max_ms].

    Args:
        bucket: ascending.
        count: values in each bucket, not all 0.
        qs: each in [0, 1].
        min_ms: the smallest value.
        max_ms: the largest value.
    """
    below = np.cumsum(count)
    ranks = [nearest_rank(int(below[-1]), q) for q in qs]
    at = np.searchsorted(below, np.array(ranks, np.int64))
    return np.clip(representative(bucket[at]), min_ms, max_ms)


def stage_counts(summary: Summary, stage: str) -> NDArray[np.int64]:
    """Return the dense sketch [BUCKETS] of a stage over all groups; zeros for an absent stage."""
    if stage not in summary.stages:
        return np.zeros(BUCKETS, np.int64)
    mine = summary.cell % len(summary.stages) == summary.stages.index(stage)
    # Exact: the weights are whole numbers whose sums stay far below 2^53.
    counts = np.bincount(summary.bucket[mine], summary.count[mine], BUCKETS)
    return counts.astype(np.int64)


def stage_quantiles(
    summary: Summary, stage: str, qs: Sequence[Fraction | float]
) -> list[float] | None:
    """Return quantiles of one stage over all groups; None when it has no value."""
    counts = stage_counts(summary, stage)
    bucket = np.flatnonzero(counts)
    if not len(bucket):
        return None
    at = summary.stages.index(stage)
    lowest = float(summary.min_ms[:, at].min())
    highest = float(summary.max_ms[:, at].max())
    return [float(q) for q in quantiles(bucket, counts[bucket], qs, lowest, highest)]
