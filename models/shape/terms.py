"""The terms of the regression: work times load, and waiting."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_WORK: Final = ("1", "w1", "w2", "w3", "w1²", "w2²", "w3²", "w1·w2", "w1·w3", "w2·w3")
_LOAD: Final = ("1", "l1", "l2", "l1·l2")
TERMS: Final = (*(f"{w}·{load}" for w in _WORK for load in _LOAD), "q1", "q2")
"""What each coefficient multiplies; w, l and q are the slots of work, load and wait."""

BINS: Final = 32
_PER_OCTAVE: Final = 2
_LEAST: Final = 2.0**-9
LARGEST: Final = 2.0**14
"""Values beyond so many times the typical one are taken for that: their squares stay finite."""


def terms(slots: Floats) -> Floats:
    """Return [N, 42] the terms of slot values [N, 7] (each divided by its scale)."""
    n = len(slots)
    work = np.empty((n, 10))
    w = slots[:, :3]
    work[:, 0] = 1.0
    work[:, 1:4] = w
    work[:, 4:7] = w * w
    work[:, 7:9] = w[:, :1] * w[:, 1:]
    work[:, 9] = w[:, 1] * w[:, 2]
    load = np.empty((n, 4))
    load[:, 0] = 1.0
    load[:, 1:3] = slots[:, 3:5]
    load[:, 3] = slots[:, 3] * slots[:, 4]
    result = np.empty((n, len(TERMS)))
    np.multiply(work[:, :, None], load[:, None, :], out=result[:, :40].reshape(n, 10, 4))
    result[:, 40:] = slots[:, 5:7]
    return result


def cover_bins(slots: Floats) -> NDArray[np.int64]:
    """Return [N, 7] the half-octave bin of each slot value; zero has a bin of its own."""
    octaves = np.floor(_PER_OCTAVE * np.log2(np.maximum(slots, _LEAST))).astype(np.int64)
    bins: NDArray[np.int64] = np.clip(octaves + 1 + _PER_OCTAVE * 8, 0, BINS - 1)
    return bins
