"""From a source's columns to ours: names, units, and ids or times that the source does not have."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.streams.sources import fields, numbers
from tailbudget.streams.sources.base import Rules

Ints = NDArray[np.int64]


def renamed(frame: pl.DataFrame, offset: Ints, arrival_ns: Ints, rules: Rules) -> pl.DataFrame:
    """Return the rows under our names; the columns of `fields.REQUIRED` are always there.

    Args:
        frame: [n] rows as the source has them.
        offset: [n] offset of the message, or row number, of each.
        arrival_ns: [n] when each arrived.
        rules: how the source is read.
    """
    if rules.columns:
        frame = _map(frame, rules)
    absent = [name for name in fields.REQUIRED if name not in frame.columns]
    if absent:
        frame = frame.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)
    if rules.ids_from_rows and frame[fields.ID].null_count():
        numbered = _numbers(offset).alias(fields.ID)
        frame = frame.with_columns(frame[fields.ID].cast(pl.String).fill_null(numbered))
    if rules.times_from_arrival and frame[fields.TIME].null_count():
        frame = frame.with_columns(_timed(frame[fields.TIME], arrival_ns))
    return frame


def _map(frame: pl.DataFrame, rules: Rules) -> pl.DataFrame:
    """Give columns our names and units; one of our name that is not named as ours is left out."""
    found = {
        name: origin for name, origin in rules.columns.items() if origin.column in frame.columns
    }
    mapped = [
        (frame[o.column] if o.unit == "ms" else numbers.in_ms(frame[o.column], o.unit)).alias(name)
        for name, o in found.items()
    ]
    used = {origin.column for origin in rules.columns.values()} | rules.columns.keys()
    kept = [series for series in frame.get_columns() if series.name not in used]
    return pl.DataFrame([*kept, *mapped])


def _timed(stamp: pl.Series, arrival_ns: Ints) -> pl.Series:
    """Return the times, those of arrival where there are none."""
    arrived = pl.Series(fields.TIME, arrival_ns).cast(pl.Datetime("ns", "UTC"))
    if stamp.null_count() == len(stamp):
        return arrived
    if isinstance(stamp.dtype, pl.Datetime):
        return stamp.fill_null(arrived.cast(stamp.dtype))
    return stamp.cast(pl.String, strict=False).fill_null(pl.Series(arrival_ns).cast(pl.String))


def _numbers(offset: Ints) -> pl.Series:
    """Return an id for each row: its offset, and its place among the records of that message."""
    first = np.flatnonzero(np.diff(offset, prepend=offset[:1] - 1))
    place = np.arange(len(offset)) - np.repeat(first, np.diff(first, append=len(offset)))
    text = pl.Series(offset).cast(pl.String)
    if not place.any():
        return text
    return text.zip_with(pl.Series(place == 0), text + "." + pl.Series(place).cast(pl.String))
