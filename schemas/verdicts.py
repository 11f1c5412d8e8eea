"""What an audit says, with the names of the JSON report; what is not known is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tailbudget.schemas.slo import SloTarget

AUDIT_SCHEMA: Final = "tailbudget.audit/1"
"""Name and version of the JSON report."""

ALL: Final = "all"
"""Basis of a percentile: every request, failures slower than all others."""

SCHEDULED: Final = "scheduled"
"""The same, with latencies that count from when the requests were due."""

SUCCESS: Final = "success"
"""Successful requests alone, with latencies as logged."""


class Verdict(StrEnum):
    """What a measurement says about a promise."""

    OK = "ok"
    AT_RISK = "at_risk"
    BREACH = "breach"
    INSUFFICIENT = "insufficient"
    NO_DATA = "no_data"


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile against its target.

    Attributes:
        percentile: "p50", "p95", "p99" or "max".
        measured_ms: the nearest-rank value; None when that request failed or there is none.
        slo_ms: the target; None when nothing is promised.
        headroom_ms: `slo_ms` less `measured_ms`.
        status: the judgement; None when there is nothing to judge by.
        basis: `ALL`, `SCHEDULED` or `SUCCESS`.
        note: what a reader must know beside the number; empty when nothing.
        n: requests of the basis.
        over: requests of the basis beyond the target, failures included; None without a target.
    """

    percentile: str
    measured_ms: float | None
    slo_ms: float | None
    headroom_ms: float | None
    status: Verdict | None
    basis: str
    note: str
    n: int
    over: int | None


@dataclass(frozen=True, slots=True)
class TailRow:
    """One stage in the slow and in the fast band; a request without the stage adds 0.

    Attributes:
        stage: the stage, or "unattributed".
        mean_fast_ms: mean of the stage over the fast band.
        mean_slow_ms: mean of the stage over the slow band.
        delta_ms: slow less fast.
        tail_share_pct: share of the total's delta, at most 100; None when the total has none.
    """

    stage: str
    mean_fast_ms: float
    mean_slow_ms: float
    delta_ms: float
    tail_share_pct: float | None


@dataclass(frozen=True, slots=True)
class TailDriver:
    """The stage with the largest slow-minus-fast difference.

    Attributes:
        stage: the stage, or "unattributed".
        mean_fast_ms: its mean over the fast band.
        mean_slow_ms: its mean over the slow band.
        delta_ms: slow less fast, above 0.
        tail_share_pct: share of the total's delta.
    """

    stage: str
    mean_fast_ms: float
    mean_slow_ms: float
    delta_ms: float
    tail_share_pct: float | None


@dataclass(frozen=True, slots=True)
class TailTable:
    """The slow-minus-fast table of one span of requests.

    Attributes:
        slow_n: successful requests of the slow band.
        fast_n: successful requests of the fast band.
        total: the row of the total.
        rows: one row a stage; the deltas add up to the total's when stages do not overlap.
        driver: the tail driver; None when no stage is slower in the slow band.
    """

    slow_n: int
    fast_n: int
    total: TailRow
    rows: tuple[TailRow, ...]
    driver: TailDriver | None


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage of the successful requests.

    Attributes:
        stage: the stage, or "unattributed".
        n: requests that carry it.
        p50_ms: nearest-rank percentile over those.
        p95_ms: likewise.
        p99_ms: likewise.
        mean_fast_ms: see `TailRow`; None when a band is empty, as for the rest.
        mean_slow_ms: see `TailRow`.
        delta_ms: see `TailRow`.
        tail_share_pct: see `TailRow`.
    """

    stage: str
    n: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    mean_fast_ms: float | None
    mean_slow_ms: float | None
    delta_ms: float | None
    tail_share_pct: float | None


@dataclass(frozen=True, slots=True)
class CohortRow:
    """One value of a cohort dimension, or one whole cohort.

    Attributes:
        dimension: the dimension's name; "cohort" for a whole cohort of several dimensions.
        value: its value; the canonical text of a whole cohort.
        n: requests, failures included.
        p99_ms: of the successful ones; None below 1,000 of them.
        delta_ms: `p99_ms` less that of all requests.
        slow_share_pct: share of the requests slower than the p95 of all that are of this cohort.
        traffic_share_pct: share of all requests that are of this cohort.
    """

    dimension: str
    value: str
    n: int
    p99_ms: float | None
    delta_ms: float | None
    slow_share_pct: float | None
    traffic_share_pct: float | None


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """A linear fit of one stage on one input-shape dimension.

    Attributes:
        stage: the stage.
        covariate: the dimension.
        n: requests that carry both.
        r2: share of the stage's variance that the fit explains.
        slope_ms_per_unit: milliseconds for one more unit.
        intercept_ms: milliseconds at zero.
    """

    stage: str
    covariate: str
    n: int
    r2: float | None
    slope_ms_per_unit: float | None
    intercept_ms: float | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """What was audited.

    Attributes:
        service: the service's name.
        start: RFC 3339 time from which requests count.
        end: RFC 3339 time before which they count.
        n: requests, failures included.
        n_ok: those that succeeded.
        n_failed: those that did not.
        slo: the target they were judged by.
    """

    service: str
    start: str
    end: str
    n: int
    n_ok: int
    n_failed: int
    slo: SloTarget | None


@dataclass(frozen=True, slots=True)
class Audit:
    """A whole audit of one service over one span.

    Attributes:
        verdict: the worst of `end_to_end`.
        provenance: what was audited.
        end_to_end: percentiles of the total against their targets.
        stages: one row a stage, the total not among them.
        tail_driver: the stage that makes slow requests slow.
        cohorts: the most over-represented among slow requests first.
        ledger: reason to count of records.
        warnings: what a reader must know before trusting the numbers.
        shape: fits of stages on input-shape dimensions.
    """

    verdict: Verdict
    provenance: Provenance
    end_to_end: tuple[Percentile, ...]
    stages: tuple[StageRow, ...]
    tail_driver: TailDriver | None
    cohorts: tuple[CohortRow, ...]
    ledger: Mapping[str, int]
    warnings: tuple[str, ...]
    shape: tuple[ShapeRow, ...] = ()
