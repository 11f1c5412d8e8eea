"""Finds records that were delivered twice, by their request id."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.models.order import run_sizes, run_starts

WAYS: Final = 8
FEWEST_BITS: Final = 4


class Dedup:
    """Remembers the request ids of a source partition for a while.

    A set-associative table of 8 hashes a set, first in first out within a set: an id is forgotten
    once 8 younger ones fell into its set. There is a set for every 4 ids of the capacity or fewer
    (65,536 sets, 4 MB, at 200,000): a redelivery a third of the capacity later is found with
    probability 0.99999, one the whole capacity later with 0.98 or more.

    Args:
        capacity: ids to remember; 0 remembers none.

    Attributes:
        sets: how many sets the table has.
    """

    def __init__(self, capacity: int) -> None:
        self._off = capacity == 0
        self._bits = max(FEWEST_BITS, (max(capacity // 4, 1) - 1).bit_length())
        self.sets = 0 if self._off else 1 << self._bits
        self._table = np.zeros((self.sets, WAYS), np.uint64)
        self._next = np.zeros(self.sets, np.uint8)

    def fresh(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return a flag a row, false where the id was seen before, and remember the ids."""
        if self._off:
            return np.ones(len(hashes), np.bool_)
        first = _first(hashes)
        sets: NDArray[np.unsignedinteger] = hashes >> np.uint64(64 - self._bits)
        if self._bits <= 16:  # sorting 16 bits is cheaper
            sets = sets.astype(np.uint16)
        known = (self._table[sets] == hashes[:, None]).any(axis=1)
        fresh: NDArray[np.bool_] = first & ~known
        self._remember(hashes[fresh], sets[fresh])
        return fresh

    def _remember(self, hashes: NDArray[np.uint64], sets: NDArray[np.unsignedinteger]) -> None:
        if not len(hashes):
            return
        order = np.argsort(sets, kind="stable")
        ordered = sets[order]
        starts = run_starts(ordered)
        lengths = run_sizes(starts, len(ordered))
        rank = np.arange(len(ordered)) - np.repeat(starts, lengths)
        way = (self._next[ordered] + rank) % WAYS
        self._table[ordered, way] = hashes[order]
        self._next[ordered[starts]] = (self._next[ordered[starts]] + lengths) % WAYS


def _first(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return a flag a row, false where an earlier row has the same hash: mostly none has."""
    ordered = np.sort(hashes)
    if (ordered[1:] == ordered[:-1]).any():
        return pl.Series(hashes).is_first_distinct().to_numpy()
    return np.ones(len(hashes), np.bool_)
