"""Order whole numbers without comparing them.

numpy sorts 16-bit integers by radix, in linear time on every processor; its comparison sort of
wider ones depends on the vector unit and is slow on some. Wider keys are taken 16 bits at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_DIGIT = 1 << 16


def order(keys: NDArray[np.int64], upper: int) -> NDArray[np.intp]:
    """Return the stable order of keys in [0, upper)."""
    if upper <= 1:
        return np.arange(len(keys))
    if upper <= 1 << 8:
        return np.argsort(keys.astype(np.uint8), kind="stable")
    result = np.argsort((keys & (_DIGIT - 1)).astype(np.uint16), kind="stable")
    while upper > _DIGIT:
        upper = -(-upper // _DIGIT)
        keys = keys >> 16
        digits = (keys & (_DIGIT - 1))[result]
        width = np.uint8 if upper <= 1 << 8 else np.uint16
        result = result[np.argsort(digits.astype(width), kind="stable")]
    return result


def run_starts(ordered: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return where each run of equal neighbours begins."""
    if not len(ordered):
        return np.zeros(0, np.intp)
    begins = np.empty(len(ordered), np.bool_)
    begins[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def run_sizes(starts: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Return how long each run of n values is."""
    sizes = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=sizes[:-1])
    sizes[-1:] = n - starts[-1:]
    return sizes


def run_ranges(
    starts: NDArray[np.intp], n: int, most: int, runs: int | None = None
) -> Iterator[tuple[int, int]]:
    """Cut the runs of n values into ranges [low, high).

    Each is of at most `most` values or of one run, and of at most `runs` runs.
    """
    ends = np.append(starts[1:], n)
    low = 0
    while low < len(starts):
        high = max(int(np.searchsorted(ends, starts[low] + most, "right")), low + 1)
        high = min(high, low + (runs or high))
        yield low, high
        low = high
