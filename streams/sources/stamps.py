"""Timestamps of a column of any type: text, epochs, or dates of a data frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.streams.sources import times, timetext
from tailbudget.streams.sources.timetext import FIRST_NS, LAST_NS, LIMIT, UNREADABLE

_NAIVE: Final = f"^{timetext.NAIVE.pattern}$"
_UNIT_NS: Final = {"ns": 1, "us": 10**3, "ms": 10**6}

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stamps:
    """Times of n rows.

    Attributes:
        missing: [n] the cell is empty.
        ns: [n] nanoseconds since the epoch, `timetext.UNREADABLE` where the cell is no time.
    """

    missing: NDArray[np.bool_]
    ns: Ints


def stamps(series: pl.Series, timezone: str | None = None) -> Stamps:
    """Read a column of times.

    Args:
        series: [n] text as `timetext` defines it, epochs, or dates.
        timezone: IANA zone of those that name none; None is UTC. In the hour that a zone has
            twice, the earlier is meant; a time in the hour that it skips is no time.
    """
    kind = series.dtype
    if kind == pl.Date:
        series = series.cast(pl.Datetime("us"))
    if isinstance(series.dtype, pl.Datetime):
        return _from_dates(series, timezone)
    if kind.is_integer():
        return _from_epochs(series)
    if kind.is_float():
        series = series.fill_nan(None)
    text = series if kind == pl.String else series.cast(pl.String, strict=False)
    text = text.fill_null("") if text.null_count() else text
    ns = times.epoch_ns(text)
    if timezone is not None:
        naive = text.str.contains(_NAIVE).to_numpy() & (ns >= FIRST_NS) & (ns <= LAST_NS)
        ns[naive] = _to_utc(pl.Series(ns[naive]).cast(pl.Datetime("ns")), timezone)
    return Stamps((text == "").to_numpy(), ns)


def _from_dates(series: pl.Series, timezone: str | None) -> Stamps:
    missing = series.is_null().to_numpy()
    kind = series.dtype
    if isinstance(kind, pl.Datetime) and kind.time_zone is None and timezone is not None:
        return Stamps(missing, _to_utc(series, timezone))
    return Stamps(missing, _whole_ns(series))


def _to_utc(local: pl.Series, timezone: str) -> Ints:
    zoned = local.dt.replace_time_zone(timezone, ambiguous="earliest", non_existent="null")
    return _whole_ns(zoned)


def _whole_ns(dates: pl.Series) -> Ints:
    kind = dates.dtype
    scale = _UNIT_NS[kind.time_unit] if isinstance(kind, pl.Datetime) else 1
    value = dates.to_physical()
    return _bounded(value, np.full(len(value), scale))


def _from_epochs(series: pl.Series) -> Stamps:
    value = series.cast(pl.Int64, strict=False)
    scale = timetext.unit_ns(np.abs(value.fill_null(0).to_numpy()))
    return Stamps(series.is_null().to_numpy(), _bounded(value, scale))


def _bounded(value: pl.Series, scale: Ints) -> Ints:
    """Return the product within the limits of a time; null is unreadable."""
    most = LIMIT // scale
    ns: Ints = np.clip(value.fill_null(0).to_numpy(), -most, most) * scale
    ns[value.is_null().to_numpy()] = UNREADABLE
    return ns
