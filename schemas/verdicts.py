"""What an audit says, with the names of the JSON report; what is not known is None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tailbudget.schemas.bounds import Bound
from tailbudget.schemas.brief import Brief
from tailbudget.schemas.budgets import KeptBudget, KeptSilence
from tailbudget.schemas.comparison import Comparison
from tailbudget.schemas.plots import Plots
from tailbudget.schemas.proposals import Cause, Optimization, Recommendation, SloProposal
from tailbudget.schemas.regressions import KeptRegression, StageState
from tailbudget.schemas.sections import (
    CohortRow,
    ColdStart,
    Collinear,
    PerUnit,
    ShapeBand,
    ShapeRow,
    StageRow,
)
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.token_timing import TokenTimings

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
    UNDECIDED = "undecided"
    """Only bounds of it are known, and the target lies between them."""


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile against its target.

    Attributes:
        percentile: "p50", "p95", "p99" or "max".
        measured_ms: the nearest-rank value; None when that request failed or there is none.
        slo_ms: the target; None when nothing is promised.
        headroom_ms: `slo_ms` less `measured_ms`.
        status: the judgement; None when there is nothing to judge by.
        basis: `ALL` (failures are slower than everything), `SUCCESS`, or `SCHEDULED` (counted from
            the time at which the request was due).
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
class Provenance:
    """What was audited.

    Attributes:
        service: the service's name.
        start: RFC 3339 time from which requests count; None when no request has a time.
        end: RFC 3339 time before which they count; likewise.
        n: requests, failures included.
        n_ok: those that succeeded; None where nothing tells them apart.
        n_failed: those that did not; likewise.
        slo: the target they were judged by.
        weighted: whether records stood for several requests (sampled telemetry).
        source: what was read, such as a file's name; empty for the stream.
        assumptions: what was found rather than told, in sentences.
        slow_request_threshold: "p95", "p99" or milliseconds: where slow begins.
    """

    service: str
    start: str | None
    end: str | None
    n: int
    n_ok: int | None
    n_failed: int | None
    slo: SloTarget | None
    weighted: bool = False
    source: str = ""
    assumptions: tuple[str, ...] = ()
    slow_request_threshold: str | float = "p95"


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
        shape_bands: spread of those dimensions in the slow and the fast band.
        collinear: dimensions that move together.
        per_unit: latency a unit of length.
        cold_start: with and without cold windows; None when it was not looked at.
        causes: the most probable first.
        optimizations: most milliseconds an hour first.
        recommendation: what to do; None when nothing may be recommended.
        refused: why `optimizations` and `recommendation` are empty; empty when they are not.
        baseline: what changed since the baseline; None without one.
        plots: points for charts; None when nobody draws.
        proposal: the SLO that the profile supports; None when it was not asked for.
        brief: the optimisation brief; likewise.
        token_timings: times of tokens, and goodput; None where no record tells any.
        bounds: percentiles of histograms, which stand in place of all else; empty for requests.
        budgets: error budgets as they were at the end; empty where no worker kept any.
        silences: those that were running in the span.
        regressions: anomalies that went on in the span; empty where no worker watches.
        stage_states: what the shape models knew at its end; likewise.
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
    shape_bands: tuple[ShapeBand, ...] = ()
    collinear: tuple[Collinear, ...] = ()
    per_unit: tuple[PerUnit, ...] = ()
    cold_start: ColdStart | None = None
    causes: tuple[Cause, ...] = ()
    optimizations: tuple[Optimization, ...] = ()
    recommendation: Recommendation | None = None
    refused: str = ""
    baseline: Comparison | None = None
    plots: Plots | None = None
    proposal: SloProposal | None = None
    brief: Brief | None = None
    bounds: tuple[Bound, ...] = ()
    token_timings: TokenTimings | None = None
    budgets: tuple[KeptBudget, ...] = ()
    silences: tuple[KeptSilence, ...] = ()
    regressions: tuple[KeptRegression, ...] = ()
    stage_states: tuple[StageState, ...] = ()


def leading(rows: Iterable[Percentile]) -> dict[str, Percentile]:
    """Return the rows that verdicts and alerts are about, failures counted, by percentile."""
    return {row.percentile: row for row in rows if row.basis != SUCCESS}


def is_refused(audit: Audit) -> bool:
    """Return whether the whole audit is refused, and not only what takes stages or a cause."""
    return bool(audit.refused) and audit.recommendation is None and not audit.bounds


def is_unjudged(audit: Audit) -> bool:
    """Return whether all was measured, and nothing is promised to judge it by."""
    promised = audit.provenance.slo is not None and audit.provenance.slo.items()
    rows = audit.end_to_end
    if audit.bounds:
        return not promised
    return bool(rows) and not promised and all(row.status is None for row in rows)
