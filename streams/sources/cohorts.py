"""Cohorts of a batch: the distinct ones, and which row is of which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import NONE, Cohort

_SEED: Final = 0x7A11
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd
_LONGEST: Final = 128
_BITS: Final = 14
_SHIFT: Final = np.uint64(64 - _BITS)


def cohorts(
    frame: pl.DataFrame, dims: Sequence[str]
) -> tuple[tuple[Cohort, ...], NDArray[np.int32]]:
    """Return the distinct cohorts of `frame`, and [n] the index of each row's.

    Rows are told apart by a 64-bit hash of their values: the cheapest of the ways measured (0.1 us
    a row over four dimensions; a rank of structs or joined categories take 0.2 us), and two
    of 2,000 cohorts collide with a chance of 1e-13. Values are cut to 128 characters.
    """
    present = [d for d in dims if d in frame.columns and frame[d].null_count() < frame.height]
    if not present:
        return (tuple((dim, NONE) for dim in dims),), np.zeros(frame.height, np.int32)
    mixed = np.zeros(frame.height, np.uint64)
    for column in frame.select(pl.col(present).hash(seed=_SEED)).get_columns():
        mixed *= _MIX
        mixed += column.to_numpy()
    first, code = _distinct(mixed)
    values = {dim: frame[dim][first].cast(pl.String).to_list() for dim in present}
    blank = [None] * len(first)
    rows = zip(*(values.get(dim, blank) for dim in dims), strict=True)
    index: dict[Cohort, int] = {}
    place = [index.setdefault(_cohort(dims, row), len(index)) for row in rows]
    return tuple(index), np.array(place, np.int32)[code]


def _distinct(values: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a row of each distinct value, and [n] the index of each row's value among them.

    A table by the top bits does it in a fifth of the time of sorting, if no two values share them.
    """
    slot = (values >> _SHIFT).astype(np.int64)
    table = np.empty(1 << _BITS, np.int64)
    rows = np.arange(len(values))
    table[slot] = rows
    first = table[slot]
    if not (values[first] == values).all():
        _, first, code = np.unique(values, return_index=True, return_inverse=True)
        return first, code
    distinct = rows[first == rows]
    table[slot[distinct]] = np.arange(len(distinct))
    return distinct, table[slot]


def _cohort(dims: Sequence[str], values: Sequence[str | None]) -> Cohort:
    pairs = zip(dims, values, strict=True)
    return tuple((dim, NONE if value is None else value[:_LONGEST]) for dim, value in pairs)
