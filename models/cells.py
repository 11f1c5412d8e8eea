"""Count values into sparse histograms, many sketches at once, without sorting them.

The values are counted in one dense array, and what is not 0 is read off it in order. In that array
each sketch gets the counters from its smallest to its largest bucket. Where that would be too many
(sketches of a few values far apart), only the octaves that are touched get counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sketch import BUCKETS, OCTAVES, bucket_index

_PAGE: Final = 6  # bits: one octave of one sketch
_SPARE: Final = 8  # counters a value, above which octaves are counted
_FEW: Final = 1 << 16  # counters that are never too many

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

    def worthwhile(self, values: int) -> bool:
        """Tell whether the dense array is small enough for so many values."""
        return not len(self.ends) or int(self.ends[-1]) <= max(_SPARE * values, _FEW)


def slots_of(n: _Ints, min_ms: NDArray[np.float64], max_ms: NDArray[np.float64]) -> Slots:
    """Lay out the counters of sketches [cells] with n values between two extremes."""
    low, high = bucket_index(min_ms), bucket_index(max_ms)
    ends = np.cumsum(np.where(n > 0, high - low + 1, 0))
    return Slots(ends - (high + 1), ends)


def count_slots(at: _Ints, weights: _Ints | None, slots: Slots) -> Cells:
    """Add up the weights (1 each when None) of values whose counters are `at`."""
    # Weighted counts pass through float64: whole numbers, exact below 2^53.
    dense = np.bincount(at, weights, int(slots.ends[-1]) if len(slots.ends) else 0)
    found = np.flatnonzero(dense != 0)  # much faster than on the counts themselves
    many = np.diff(np.searchsorted(found, slots.ends), prepend=0)
    cell = np.repeat(np.arange(len(many), dtype=np.int32), many)
    bucket = found - np.repeat(slots.zero, many)
    return Cells(cell, bucket.astype(np.int16), dense[found].astype(np.int64))


def count_keys(keys: _Ints, weights: _Ints | None, cells: int) -> Cells:
    """Add up the weights (1 each when None) of equal keys cell * BUCKETS + bucket."""
    touched = np.zeros(cells * OCTAVES, np.bool_)
    page = keys >> _PAGE
    touched[page] = True
    pages = np.flatnonzero(touched)
    number = np.zeros(cells * OCTAVES, np.int64)
    number[pages] = np.arange(0, len(pages) << _PAGE, 1 << _PAGE)
    at = number[page]
    at += keys & ((1 << _PAGE) - 1)
    dense = np.bincount(at, weights, len(pages) << _PAGE)
    found = np.flatnonzero(dense != 0)
    key = (pages[found >> _PAGE] << _PAGE) | (found & ((1 << _PAGE) - 1))
    cell = key // BUCKETS
    return Cells(
        cell.astype(np.int32),
        (key - cell * BUCKETS).astype(np.int16),
        dense[found].astype(np.int64),
    )
