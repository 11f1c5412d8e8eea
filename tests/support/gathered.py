"""Evidence from plain columns, by the way that a log takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tailbudget.models.evidence import Evidence, Gathering
from tailbudget.models.summarise import summarise
from tailbudget.schemas.sections import ColdWindow
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder

T0_NS = 1_772_445_600_000_000_000  # 2026-03-02T10:00:00Z
PANE_NS = 10_000_000_000


def gathered(
    columns: Mapping[str, Any],
    *,
    covariates: Sequence[str] = (),
    cohort_dims: Sequence[str] = (),
    thresholds_ms: Sequence[float] = (),
    cold_windows: Sequence[ColdWindow] | None = None,
    every_s: float = 1.0,
) -> Evidence:
    """Return the evidence of a service "svc".

    Args:
        columns: as in a record; `request_id` and `timestamp` are made up where they lack, one
            request every `every_s` seconds from `T0_NS`.
        covariates: columns that are covariates.
        cohort_dims: columns that are cohort dimensions.
        thresholds_ms: latencies to count exactly.
        cold_windows: spans after deploys.
        every_s: seconds between requests.
    """
    frame = pl.DataFrame(dict(columns), strict=False)
    if "request_id" not in frame.columns:
        ids = [f"r{i}" for i in range(frame.height)]
        frame = frame.with_columns(pl.Series("request_id", ids))
    if "timestamp" not in frame.columns:
        stamps = [T0_NS + int(i * every_s * 1e9) for i in range(frame.height)]
        frame = frame.with_columns(pl.Series("timestamp", stamps))
    frame = frame.with_columns(pl.col(pl.Float64).fill_nan(None))
    rules = Rules(
        service="svc",
        default=ServiceRules(covariates=tuple(covariates), cohort_dims=tuple(cohort_dims)),
    )
    arrival_ns = 2**62  # no clock: nothing of a log is in the future
    message = SourceMessage(frame.write_ndjson().encode(), 0, arrival_ns)
    decoded = decoder("native", rules).decode([message])
    gathering = Gathering("svc", pane_ns=PANE_NS, cold_windows=cold_windows)
    for service in decoded.services:
        gathering.add(summarise(service, pane_ns=PANE_NS, thresholds_ms=thresholds_ms))
    return gathering.evidence()
