"""Columns and summaries of hand-made requests, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailbudget.models.summarise import summarise
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.summary import Summary

SECOND_NS = 1_000_000_000
PANE_NS = 10 * SECOND_NS
T0_NS = 1_772_445_600 * SECOND_NS  # 2026-03-02T10:00:00Z


def columns_of(
    total_ms: Sequence[float],
    *,
    ids: Sequence[int] | None = None,
    ts_ns: Sequence[int] | None = None,
    service: str = "chat",
) -> Columns:
    """Return successful requests of one cohort with one stage that takes half of the time."""
    n = len(total_ms)
    numbers = np.asarray(range(n) if ids is None else ids, np.uint64)
    times = np.asarray([T0_NS] * n if ts_ns is None else ts_ns, np.int64)
    total = np.asarray(total_ms, np.float64)
    return Columns(
        service=service,
        cohorts=((("route", "a"),),),
        cohort=np.zeros(n, np.int32),
        id_hash=numbers * np.uint64(0x9E3779B97F4A7C15),
        ids=[f"r{number}" for number in numbers.tolist()],
        ts_ns=times,
        outcome=np.full(n, Outcome.OK, np.int8),
        total_ms=total,
        limit_ms=np.full(n, np.nan),
        weight=None,
        stages=("model",),
        stage_ms=total[None, :] / 2,
        covariates=("sequence_length",),
        covariate=total[None, :] * 3,
        offset=numbers.astype(np.int64),
    )


def summary_of(columns: Columns, thresholds_ms: Sequence[float] = ()) -> Summary:
    """Return the summary of requests in panes of 10 s."""
    return summarise(columns, pane_ns=PANE_NS, thresholds_ms=thresholds_ms)
