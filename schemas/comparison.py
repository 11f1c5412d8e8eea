"""What changed between a baseline and now; the names are those of the JSON report."""

from __future__ import annotations

from dataclasses import dataclass

from tailbudget.schemas.sections import Interval


@dataclass(frozen=True, slots=True)
class Change:
    """One percentile of one thing, before and now.

    Attributes:
        of: "total", "stage" or "cohort".
        name: the stage, or "dimension=value"; empty for the total.
        percentile: "p50", "p95" or "p99".
        before_ms: in the baseline; None when it was not measured.
        now_ms: in this log; likewise.
        delta_ms: now less before.
        interval_ms: 95 % interval of `delta_ms`; None when either side is too small.
        p_value: of the test that both have the same percentile; None when either side is too small.
        changed: whether the test, corrected for the number of tests, says so, and the difference
            is more than the rounding of the sketch; None is "can't say".
    """

    of: str
    name: str
    percentile: str
    before_ms: float | None
    now_ms: float | None
    delta_ms: float | None
    interval_ms: Interval | None
    p_value: float | None
    changed: bool | None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the change of the p99; the parts add up to the change.

    Attributes:
        part: "failures", "cold_start", "workload_mix" or "regression", in this order; one that
            could not be told apart is missing, and in the regression.
        delta_ms: milliseconds of the change.
        note: how it was found.
    """

    part: str
    delta_ms: float
    note: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A log against its baseline.

    Attributes:
        before_n: requests of the baseline.
        now_n: requests of this log.
        changes: total first, then stages, then cohorts, the largest change first.
        p99_change_ms: of all requests; None when either p99 was not measured.
        parts: the same taken apart; empty when it was not.
        verdict: "regression", "workload", "cold_start", "failures", "improved", "unchanged" or
            "insufficient".
        note: the verdict in a sentence.
    """

    before_n: int
    now_n: int
    changes: tuple[Change, ...]
    p99_change_ms: float | None
    parts: tuple[Part, ...]
    verdict: str
    note: str
