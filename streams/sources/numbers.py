"""Numbers from cells of any type, as `repair` reads them from JSON."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from tailbudget.streams.sources import repair

UNITS: Final = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
"""Milliseconds in each unit that a duration may be in."""

_NS_PER_MS: Final = 1e6


def floats(series: pl.Series) -> pl.Series:
    """Return the cells as Float64: null is missing, and the stand-ins of `repair` say the rest.

    A column of durations carries its unit and comes in milliseconds.
    """
    kind = series.dtype
    if kind == pl.String:
        return _from_text(series)
    if kind == pl.Duration:
        return series.dt.total_nanoseconds() / _NS_PER_MS
    if kind.is_float():
        number = series.cast(pl.Float64)
        return number.fill_nan(repair.NOT_FINITE) if number.is_nan().any() else number
    if kind.is_numeric() or kind == pl.Null:
        return series.cast(pl.Float64)
    if isinstance(kind, pl.Categorical | pl.Enum):
        return _from_text(series.cast(pl.String))
    missing = series.is_null()
    return pl.Series(np.full(len(series), repair.NOT_A_NUMBER)).set(missing, None)


def in_ms(series: pl.Series, unit: str) -> pl.Series:
    """Return durations of a unit in milliseconds; the stand-ins stay what they are."""
    number = floats(series)
    if unit == "ms" or series.dtype == pl.Duration:
        return number
    scale = UNITS[unit]
    scaled = number * scale if scale > 1 else number / round(1 / scale)
    return scaled.zip_with(number.abs() < repair.HUGE, number)


def _from_text(series: pl.Series) -> pl.Series:
    """Read numbers that are written as text; a blank is missing."""
    number = series.cast(pl.Float64, strict=False)
    doubtful = series.is_not_null() & ~number.is_finite().fill_null(value=False)
    if not doubtful.any():
        return number
    at = np.flatnonzero(doubtful.to_numpy())
    mended = [repair.as_number(text) for text in series[at].to_list()]
    return number.scatter(at, pl.Series(mended, dtype=pl.Float64))
