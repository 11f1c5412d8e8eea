"""Count values into sparse histograms, many sketches at once.

The values are counted in one dense array, and what is not 0 is read off it in order. In that array
each sketch gets the counters from its smallest to its largest bucket. Where that would be too many
(sketches of a few values far apart), the values are put in order instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import order, run_sizes, run_starts
from tailbudget.models.sketch import BUCKETS, bucket_index

_SPARE: Final = 16  # counters a value, above which ordering the values is faster
_FEW: Final = 1 << 16  # counters that are never too many
_CHUNK: Final = 1 << 16  # cells added at a time, so that what is in between stays in the cache

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cells:
    """Sparse counts, sorted by (cell, bucket).

    Attributes:
        cell: [K] which sketch.
        bucket: [K] which bucket of it.
        count: [K] values there, never 0.
    """

    cell: NDArray[np.int32]
    bucket: NDArray[np.int16]
    count: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Slots:
    """Where the counters of each sketch are in the dense array.

    Attributes:
        zero: [cells] where the counter of bucket 0 of each sketch is, or would be.
        ends: [cells] behind the last counter of each sketch.
    """

    zero: _Ints
    ends: _Ints

    @property
    def total(self) -> int:
        """How many counters there are."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def worthwhile(self, values: int) -> bool:
        """Tell whether the dense array is small enough for so many values."""
        return self.total <= max(_SPARE * values, _FEW)


def slots_of(n: _Ints, min_ms: NDArray[np.float64], max_ms: NDArray[np.float64]) -> Slots:
    """Lay out the counters of sketches [cells] with n values between two extremes."""
    low, high = bucket_index(min_ms), bucket_index(max_ms)
    ends = np.cumsum(np.where(n > 0, high - low + 1, 0))
    return Slots(ends - (high + 1), ends)


def count_slots(at: _Ints, weights: _Ints | None, slots: Slots) -> Cells:
    """Add up the weights (1 each when None) of values whose counters are `at`."""
    # Weighted counts pass through float64: whole numbers, exact below 2^53.
    return _read_off(np.bincount(at, weights, slots.total), slots)


def add_cells(cells: Cells, zero: _Ints, slots: Slots) -> Cells:
    """Add up sparse counts; zero[c] is the counter of bucket 0 of the sketch that c belongs to."""
    dense = np.zeros(slots.total, np.int64)
    for low in range(0, len(cells.cell), _CHUNK):
        part = slice(low, low + _CHUNK)
        at = zero[cells.cell[part]]
        at += cells.bucket[part]
        np.add.at(dense, at, cells.count[part])
    return _read_off(dense, slots)


def _read_off(dense: NDArray[np.int64] | NDArray[np.float64], slots: Slots) -> Cells:
    found = np.flatnonzero(dense != 0)  # much faster than on the counts themselves
    below = np.searchsorted(found, slots.ends)
    many = below.copy()
    many[1:] -= below[:-1]
    cell = np.repeat(np.arange(len(many), dtype=np.int32), many)
    bucket = found - np.repeat(slots.zero, many)
    return Cells(cell, bucket.astype(np.int16), dense[found].astype(np.int64))


def count_keys(keys: _Ints, weights: _Ints | None, cells: int) -> Cells:
    """Add up the weights (1 each when None) of equal keys cell * BUCKETS + bucket."""
    at = order(keys, cells * BUCKETS)
    ordered = keys[at]
    starts = run_starts(ordered)
    if weights is None or not len(starts):
        count = run_sizes(starts, len(keys)).astype(np.int64)
    else:
        count = np.add.reduceat(weights[at], starts)
    cell, bucket = np.divmod(ordered[starts], BUCKETS)
    return Cells(cell.astype(np.int32), bucket.astype(np.int16), count)
