"""The normal distribution over arrays, from a table."""

from __future__ import annotations

from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_Z: Final = np.linspace(-6.0, 6.0, 2401)
_CDF: Final = np.array([NormalDist().cdf(z) for z in _Z.tolist()])


def cdf(z: Floats) -> Floats:
    """Return the probability below z, to 2e-6; z beyond 6 counts as 6."""
    result: Floats = np.interp(z, _Z, _CDF)
    return result


def quantile(probability: Floats) -> Floats:
    """Return z below which the probability lies, within [-6, 6]."""
    result: Floats = np.interp(probability, _CDF, _Z)
    return result
