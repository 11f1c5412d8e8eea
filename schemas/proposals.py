"""Sections of the report that conclude: causes, fixes, the recommendation.

The names are those of the JSON report; what is not known is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tailbudget.schemas.sections import Interval


class CauseName(StrEnum):
    """Why the tail is slow."""

    INPUT_SHAPE = "input_shape"
    COLD_START = "cold_start"
    CONTENTION = "contention"
    EXTERNAL_DEPENDENCY = "external_dependency"
    CACHE_MISS = "cache_miss"
    FANOUT = "fanout"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause with what speaks for it and against it.

    Attributes:
        cause: its name.
        stage: the stage that it acts through; empty when it is the whole request.
        score: 0 to 1, how much of the tail the evidence ties to it.
        evidence: sentences with the figures that speak for it.
        against: sentences with the figures that speak against it.
        missing: what to measure next, where evidence is missing.
        cohort: "dimension=value" where one cohort carries it; empty otherwise.
        covariate: the input-shape dimension it acts through; empty otherwise.
    """

    cause: CauseName
    stage: str
    score: float
    evidence: tuple[str, ...]
    against: tuple[str, ...]
    missing: tuple[str, ...] = ()
    cohort: str = ""
    covariate: str = ""


@dataclass(frozen=True, slots=True)
class Optimization:
    """One fix, with what it is estimated to save.

    Attributes:
        fix: what to do, in the imperative.
        cause: which cause it treats.
        p99_saved_ms: estimated by replaying sampled requests with the fix applied; None when the
            catalogue knows the fix but nothing measured tells its effect.
        interval_ms: interval of the estimate.
        hours: engineering hours.
        ms_per_hour: `p99_saved_ms` for one hour.
        quality_risk: "none", "low", "medium" or "high": risk to the quality of answers.
        reversible: whether it can be switched off again at once.
        verify: how to see that it worked.
        key: name of the fix in the catalogue.
        horizon: "short" (mitigation) or "long".
        basis: how the saving was estimated, such as "capped at 8 rows in 1,024 sampled requests".
    """

    fix: str
    cause: CauseName
    p99_saved_ms: float | None
    interval_ms: Interval | None
    hours: float
    ms_per_hour: float | None
    quality_risk: str
    reversible: bool
    verify: str
    key: str = ""
    horizon: str = "long"
    basis: str = ""


@dataclass(frozen=True, slots=True)
class SupportedSlo:
    """The tightest target that the measured profile supports.

    Attributes:
        percentile: "p50", "p95" or "p99".
        measured_ms: as measured, failures slower than all; None when it was not.
        supported_ms: upper end of the interval of the measured percentile, with `margin_pct` on
            top; None when there are too few requests.
        margin_pct: what was added.
        confidence_pct: of the interval.
        n: requests.
    """

    percentile: str
    measured_ms: float | None
    supported_ms: float | None
    margin_pct: float
    confidence_pct: float
    n: int


@dataclass(frozen=True, slots=True)
class StageBudget:
    """The part of a latency target that is given to a stage.

    Attributes:
        stage: the stage.
        p99_ms: its part of the p99 target.
        share_pct: the same of the whole.
    """

    stage: str
    p99_ms: float
    share_pct: float


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Latency at one level of load.

    Attributes:
        load_rps: requests a second, upper end of the level.
        in_flight: mean requests in flight (Little's law).
        n: requests.
        p99_ms: of the successful ones; None where they are too few.
    """

    load_rps: float
    in_flight: float
    n: int
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Fix the tail, or negotiate the SLO anew, or add capacity: one choice, with its numbers.

    Attributes:
        choice: "keep", "fix_tail", "renegotiate_slo", "add_capacity" or "measure_first".
        reason: why, with the figures.
        first_step: what to do first; empty when there is nothing to do.
        mitigation: what helps until then; empty when nothing does.
        supported: the tightest SLO that the profile supports.
        budgets: how that p99 divides over the stages.
        load: latency against load, ascending; empty when load did not vary.
    """

    choice: str
    reason: str
    first_step: str
    mitigation: str
    supported: tuple[SupportedSlo, ...]
    budgets: tuple[StageBudget, ...] = ()
    load: tuple[LoadPoint, ...] = ()
