"""Numbers as sentences show them: three digits, and whole numbers above."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def num(value: float) -> str:
    """Return a number with three significant digits, or without decimals from 1,000 on."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def median(values: NDArray[np.float64]) -> str:
    """Return the median of what is known of some values."""
    known = values[np.isfinite(values)]
    return num(float(np.median(known)) if len(known) else math.nan)


def mean(values: NDArray[np.float64]) -> str:
    """Return the mean of what is known of some values."""
    known = values[np.isfinite(values)]
    return num(float(known.mean()) if len(known) else math.nan)


def largest(values: NDArray[np.float64]) -> str:
    """Return the largest of what is known of some values."""
    return num(float(values[np.isfinite(values)].max(initial=-math.inf)))


def in_ms(value: float) -> str:
    """Return milliseconds with their unit."""
    return f"{num(value)} ms"
