"""Latency from when a request was due, where the record says when that was.

A client that sends its next request only when the last one has been answered starts late just
when the service is slow, and its totals leave that wait out (coordinated omission).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.models.columns import with_stages
from tailbudget.schemas.records import LOGGED, SCHEDULE_WAIT, Columns
from tailbudget.streams.sources.stamps import stamps
from tailbudget.streams.sources.timetext import UNREADABLE
from tailbudget.streams.sources.verdicts import DAY_MS

_NS_PER_MS: Final = 1e6

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long n rows waited for their start.

    Attributes:
        wait_ms: [n] NaN where the row carries no usable schedule.
        wrong: [n] it carries one that is no time, after its start, or a day before.
    """

    wait_ms: Floats
    wrong: NDArray[np.bool_]


def waits(scheduled: pl.Series, ts_ns: NDArray[np.int64], timezone: str | None) -> Schedule:
    """Return the waits of rows that started at `ts_ns`."""
    due = stamps(scheduled, timezone)
    readable = due.ns != UNREADABLE
    wait_ms = np.where(readable, ts_ns - np.where(readable, due.ns, 0), -1) / _NS_PER_MS
    usable = readable & (wait_ms >= 0) & (wait_ms <= DAY_MS)
    return Schedule(np.where(usable, wait_ms, np.nan), ~usable & ~due.missing)


def from_schedule(columns: Columns, wait_ms: Floats) -> Columns:
    """Return the rows with totals from the schedule; what was logged becomes a stage.

    Each row depends on its own cells alone: one without a schedule keeps its total.
    """
    known = ~np.isnan(wait_ms)
    if not known.any():
        return columns
    logged = np.where(known, columns.total_ms, np.nan)
    own = dict(zip(columns.stages, columns.stage_ms, strict=True))
    stages = own | {SCHEDULE_WAIT: wait_ms}
    if not np.isnan(logged).all():
        stages[LOGGED] = logged
    total_ms = np.where(known, columns.total_ms + wait_ms, columns.total_ms)
    return replace(with_stages(columns, stages), total_ms=total_ms)
