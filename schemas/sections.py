"""Sections of the report that measure: stages, shape, cohorts, cold start.

The names are those of the JSON report; what is not known is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Interval = tuple[float, float]
"""The low and the high end of a 95 % interval."""


class StageRole(StrEnum):
    """What a stage is among the others."""

    STAGE = "stage"
    CONTAINER = "container"
    PARALLEL = "parallel"
    UNATTRIBUTED = "unattributed"


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
        role: a container holds other stages, parallel stages run at the same time; neither is
            added to the others.
        p99_share_pct: the stage's part of the total in the slow band; with the other stages that
            are added up at most 100.
        tail_only: the median is steady while the p99 is not: the stage hurts the tail alone.
        delta_interval_ms: bootstrap interval of `delta_ms`.
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
    role: StageRole = StageRole.STAGE
    p99_share_pct: float | None = None
    tail_only: bool | None = None
    delta_interval_ms: Interval | None = None


@dataclass(frozen=True, slots=True)
class CohortRow:
    """One value of a cohort dimension, of a pair of dimensions, or one whole cohort.

    Attributes:
        dimension: the dimension's name, such as "route"; "route+region" for a pair; "cohort" for
            a whole cohort of several dimensions.
        value: its value; of a pair "bulk+eu"; the canonical text of a whole cohort.
        n: requests, failures included.
        p99_ms: of the successful ones; None below 1,000 of them.
        delta_ms: `p99_ms` less that of all requests.
        slow_share_pct: share of the requests slower than the p95 of all that are of this cohort.
        traffic_share_pct: share of all requests that are of this cohort.
        p99_without_ms: p99 of the successful requests of all others; None where they are too few.
    """

    dimension: str
    value: str
    n: int
    p99_ms: float | None
    delta_ms: float | None
    slow_share_pct: float | None
    traffic_share_pct: float | None
    p99_without_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ShapeRow:
    """A fit of one stage on one input-shape dimension.

    Attributes:
        stage: the stage, or "total".
        covariate: the dimension.
        n: requests that carry both.
        r2: share of the stage's variance that the linear fit explains.
        slope_ms_per_unit: milliseconds for one more unit.
        intercept_ms: milliseconds at zero.
        slope_interval_ms: 95 % interval of the slope.
        quadratic_r2: share of the variance that a parabola explains.
        loglog_r2: share of the variance of ln(ms) that a power law explains.
        exponent: the power of that law.
        unit: what one unit of the covariate is, such as "token".
    """

    stage: str
    covariate: str
    n: int
    r2: float | None
    slope_ms_per_unit: float | None
    intercept_ms: float | None
    slope_interval_ms: Interval | None = None
    quadratic_r2: float | None = None
    loglog_r2: float | None = None
    exponent: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class ShapeBand:
    """How one input-shape dimension is spread in the slow and in the fast band.

    Attributes:
        covariate: the dimension.
        band: "slow" or "fast".
        n: sampled requests of the band that carry it.
        p50: nearest-rank percentile over those; None when there are none.
        p95: likewise.
        p99: likewise.
        max: likewise.
    """

    covariate: str
    band: str
    n: int
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True, slots=True)
class Collinear:
    """Two input-shape dimensions that move together: neither's slope stands alone.

    Attributes:
        first: a covariate.
        second: another.
        r: Pearson's correlation.
    """

    first: str
    second: str
    r: float


@dataclass(frozen=True, slots=True)
class PerUnit:
    """Latency for one unit of a length.

    Attributes:
        stage: the stage, or "total".
        covariate: the length, such as "output_tokens".
        n: sampled requests that carry both, the length above 0.
        p50_ms: nearest-rank percentile of milliseconds a unit.
        p95_ms: likewise.
        p99_ms: likewise.
    """

    stage: str
    covariate: str
    n: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class ColdWindow:
    """A span after a deploy or scale-up in which requests are expected to be slow.

    Attributes:
        start_ns: where it begins.
        end_ns: where it ends, exclusive.
        version: what was deployed; empty when unknown.
        kind: "deploy" or "scale_up".
    """

    start_ns: int
    end_ns: int
    version: str
    kind: str


@dataclass(frozen=True, slots=True)
class SuspectedStart:
    """What looks like a cold start that no event announced.

    Attributes:
        sign: "replica_first_seen", "idle_gap" or "opening_wave".
        at: RFC 3339 time of its first slow request.
        instance: the replica; empty when none is named.
        idle_s: how long nothing had come before; None when that is not the sign.
        n: requests of the wave.
        worst_ms: the slowest of them.
        usual_ms: what is usual afterwards.
    """

    sign: str
    at: str
    instance: str
    idle_s: float | None
    n: int
    worst_ms: float
    usual_ms: float


@dataclass(frozen=True, slots=True)
class ColdStart:
    """With and without the windows after deploys.

    Attributes:
        deploys: deploys and scale-ups, one entry each.
        excluded: requests inside of cold windows.
        unfiltered_p99_ms: p99 of all requests (failures slower than all).
        filtered_p99_ms: p99 of those outside of cold windows; None is "not computable".
        verdict: "cold_start" (steady state is within the SLO, cold windows break it),
            "not_cold_start", or "not_computable".
        suspected: what looks like an unannounced cold start.
        note: the verdict in a sentence.
    """

    deploys: tuple[ColdWindow, ...]
    excluded: int
    unfiltered_p99_ms: float | None
    filtered_p99_ms: float | None
    verdict: str
    suspected: tuple[SuspectedStart, ...]
    note: str
