"""A rolling audit as ClickHouse keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FULL: Final = 2**62
"""Versions from here on are of full reports, which replace whatever a window's live audit said;
of two of a window the one drawn last counts."""


@dataclass(frozen=True, slots=True)
class AuditStageRow:
    """One stage of an audit; None is what could not be measured.

    Attributes:
        stage: its name.
        n: requests that have it.
        p50_ms: median over successes.
        p95_ms: 95th percentile over successes.
        p99_ms: 99th percentile over successes.
        mean_fast_ms: mean over requests of the fast band.
        mean_slow_ms: mean over requests of the slow band.
        delta_ms: slow minus fast.
        tail_share_pct: its share of the whole slow-minus-fast difference.
        role: "stage", "container", "parallel" or "unattributed".
        p99_share_pct: its part of the total in the slow band.
        tail_only: its median is steady and its p99 is not.
        delta_low_ms: low end of the 95 % interval of `delta_ms`.
        delta_high_ms: its high end.
    """

    stage: str
    n: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    mean_fast_ms: float | None = None
    mean_slow_ms: float | None = None
    delta_ms: float | None = None
    tail_share_pct: float | None = None
    role: str = "stage"
    p99_share_pct: float | None = None
    tail_only: bool | None = None
    delta_low_ms: float | None = None
    delta_high_ms: float | None = None


@dataclass(frozen=True, slots=True)
class AuditCohortRow:
    """One value of a cohort dimension in an audit.

    Attributes:
        dimension: such as "route".
        value: such as "chat".
        n: its requests.
        p99_ms: its 99th percentile.
        delta_ms: that minus the 99th percentile of all the others.
        slow_share_pct: its share of the requests in the slow band.
        traffic_share_pct: its share of all requests.
        p99_without_ms: 99th percentile of all requests but these.
    """

    dimension: str
    value: str
    n: int
    p99_ms: float | None = None
    delta_ms: float | None = None
    slow_share_pct: float | None = None
    traffic_share_pct: float | None = None
    p99_without_ms: float | None = None


@dataclass(frozen=True, slots=True)
class AuditShapeRow:
    """How a stage follows an input-shape dimension; see `sections.ShapeRow`."""

    stage: str
    covariate: str
    n: int
    r2: float | None = None
    slope_ms_per_unit: float | None = None
    intercept_ms: float | None = None
    quadratic_r2: float | None = None
    loglog_r2: float | None = None
    exponent: float | None = None


@dataclass(frozen=True, slots=True)
class AuditCauseRow:
    """A cause; see `proposals.Cause`."""

    cause: str
    stage: str
    cohort: str
    covariate: str
    score: float
    evidence: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditOptimizationRow:
    """A fix; see `proposals.Optimization`. `fix` is its name in the catalogue."""

    fix: str
    text: str
    cause: str
    p99_saved_ms: float | None
    saved_low_ms: float | None
    saved_high_ms: float | None
    hours: float
    ms_per_hour: float | None
    quality_risk: str
    reversible: bool
    horizon: str


@dataclass(frozen=True, slots=True)
class AuditRow:
    """The audit of one window of a service.

    Attributes:
        service: the service's name.
        window_s: length of the window.
        end_ns: its end, event time; kept to the millisecond.
        version: grows with each rewrite of the same window.
        verdict: ok, at_risk, breach, insufficient or no_data.
        requests: accepted requests, failures included.
        failed: requests that failed.
        p50_ms: measured, failures ranked as slower than all; None where that cannot be said.
        p95_ms: likewise.
        p99_ms: likewise.
        max_ms: slowest success.
        slo_p50_ms: the target.
        slo_p95_ms: likewise.
        slo_p99_ms: likewise.
        tail_driver: the stage that drives the tail; empty when unknown.
        payload: the whole audit as JSON.
        stages: its stages.
        cohorts: its cohorts, dimension by dimension.
        shape: fits of stages on input-shape dimensions.
        causes: the most probable first.
        optimizations: most milliseconds an hour first.
    """

    service: str
    window_s: int
    end_ns: int
    version: int
    verdict: str
    requests: int
    failed: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    slo_p50_ms: float | None = None
    slo_p95_ms: float | None = None
    slo_p99_ms: float | None = None
    tail_driver: str = ""
    payload: str = "{}"
    stages: tuple[AuditStageRow, ...] = ()
    cohorts: tuple[AuditCohortRow, ...] = ()
    shape: tuple[AuditShapeRow, ...] = ()
    causes: tuple[AuditCauseRow, ...] = ()
    optimizations: tuple[AuditOptimizationRow, ...] = ()
