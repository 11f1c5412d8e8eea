"""Finds records that were delivered twice, by their request id."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

WAYS: Final = 8
SET_BITS: Final = 16


class Dedup:
    """Remembers the request ids of a source partition for a while.

    A set-associative table of 65,536 sets of 8 hashes each (4 MB), first in first out within a
    set: an id is forgotten once 8 younger ones fell into its set. A redelivery 65,000 records
    later is found with probability 0.99999, one 200,000 records later with 0.99.
    """

    def __init__(self) -> None:
        self._table = np.zeros((1 << SET_BITS, WAYS), np.uint64)
        self._next = np.zeros(1 << SET_BITS, np.uint8)

    def fresh(self, hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return a flag a row, false where the id was seen before, and remember the ids."""
        first = pl.Series(hashes).is_first_distinct().to_numpy()
        sets = (hashes >> np.uint64(64 - SET_BITS)).astype(np.uint16)
        known = (self._table[sets] == hashes[:, None]).any(axis=1)
        fresh: NDArray[np.bool_] = first & ~known
        self._remember(hashes[fresh], sets[fresh])
        return fresh

    def _remember(self, hashes: NDArray[np.uint64], sets: NDArray[np.uint16]) -> None:
        if not len(hashes):
            return
        order = np.argsort(sets, kind="stable")
        ordered = sets[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        lengths = np.diff(np.r_[starts, len(ordered)])
        rank = np.arange(len(ordered)) - np.repeat(starts, lengths)
        way = (self._next[ordered] + rank) % WAYS
        self._table[ordered, way] = hashes[order]
        self._next[ordered[starts]] = (self._next[ordered[starts]] + lengths) % WAYS
