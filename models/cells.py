"""Count values into sparse histograms: many sketches at once.

A key is cell * BUCKETS + bucket. One octave of one cell is a page of 64 counters; only the pages
that are touched get memory, so that the dense counting stays small however many cells there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sketch import BUCKETS, OCTAVES

_PAGE = 6  # bits


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


def count_cells(keys: NDArray[np.int64], weights: NDArray[np.int64] | None, cells: int) -> Cells:
    """Add up the weights (1 each when None) of equal keys of `cells` sketches."""
    touched = np.zeros(cells * OCTAVES, np.bool_)
    page = keys >> _PAGE
    touched[page] = True
    pages = np.flatnonzero(touched)
    number = np.zeros(cells * OCTAVES, np.int64)
    number[pages] = np.arange(0, len(pages) << _PAGE, 1 << _PAGE)
    slots = number[page]
    slots += keys & ((1 << _PAGE) - 1)
    # Weighted counts pass through float64: whole numbers, exact below 2^53.
    dense = np.bincount(slots, weights, len(pages) << _PAGE)
    at = np.flatnonzero(dense != 0)  # much faster than on the counts themselves
    found = (pages[at >> _PAGE] << _PAGE) | (at & ((1 << _PAGE) - 1))
    cell = found // BUCKETS
    return Cells(
        cell.astype(np.int32),
        (found - cell * BUCKETS).astype(np.int16),
        dense[at].astype(np.int64),
    )
