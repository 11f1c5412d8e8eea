"""Does a stage have two modes, such as the hits and the misses of a cache?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LEAST: Final = 10
"""Requests of a mode: fewer are outliers."""
_APART: Final = 2.0
"""Ashman's D beyond which two modes are clearly separated (K. Ashman et al., Detecting
bimodality in astronomical datasets, 1994)."""
_VALLEY: Final = 0.1  # of what both modes hold in as wide a stretch: the valley between them


@dataclass(frozen=True, slots=True)
class Modes:
    """Two modes.

    Attributes:
        low_ms: geometric mean of the lower one.
        high_ms: of the higher one.
        high_share: share of the requests in the higher one.
    """

    low_ms: float
    high_ms: float
    high_share: float


def two_modes(values_ms: NDArray[np.float64]) -> Modes | None:
    """Return the two modes of positive values; None when there are not two.

    The values are cut, on a scale of logarithms, where the variance between both sides is
    greatest (N. Otsu, A threshold selection method, 1979); the sides are modes when they are
    far apart for their widths and the stretch between them is nearly empty.
    """
    logs = np.sort(np.log(values_ms[values_ms > 0]))
    n = len(logs)
    if n < 2 * _LEAST:
        return None
    sums = np.cumsum(logs)[:-1]
    left = np.arange(1, n)
    between = left * (n - left) * (sums / left - (sums[-1] + logs[-1] - sums) / (n - left)) ** 2
    at = int(np.argmax(between)) + 1
    low, high = logs[:at], logs[at:]
    if min(len(low), len(high)) < _LEAST or np.exp(high.mean() - low.mean()) < _APART:
        return None
    spread = float(np.sqrt((low.var() + high.var()) / 2))
    if high.mean() - low.mean() < _APART * np.sqrt(2) * spread or not _valley(low, high):
        return None
    return Modes(float(np.exp(low.mean())), float(np.exp(high.mean())), len(high) / n)


def _valley(low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Tell whether the middle third between the modes holds few values."""
    width = (high.mean() - low.mean()) / 3
    middle = (low > low.mean() + width).sum() + (high < high.mean() - width).sum()
    return bool(middle <= _VALLEY * min(len(low), len(high)))
