"""Take the change of the p99 of all requests apart: failures, cold start, workload, regression.

Sequential counterfactuals, in this order: failures are taken out on both sides, then cold windows,
then the baseline is given today's workload. Each part is what its step takes off the change, and
what is left at the end is regression: the parts add up to the change by construction.
A step that cannot be taken is left out, and its effect stays in the regression, which says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tailbudget.models.evidence import Evidence
from tailbudget.models.sides import Side, all_requests, answered
from tailbudget.models.workload_mix import Mix, Population, everything, outside_cold, workload_mix
from tailbudget.schemas.comparison import Part
from tailbudget.schemas.slo import QUANTILES

FAILURES: Final = "failures"
COLD_START: Final = "cold_start"
WORKLOAD: Final = "workload_mix"
REGRESSION: Final = "regression"

P99: Final = QUANTILES["p99"]


@dataclass(frozen=True, slots=True)
class _Step:
    """What is left of both sides after a step, and how much its p99 changed.

    Attributes:
        before: the baseline.
        now: today.
        change_ms: of the p99.
    """

    before: Population
    now: Population
    change_ms: float


def decompose(before: Evidence, now: Evidence) -> tuple[Part, ...]:
    """Return the parts of the change of the p99 of all requests; they add up to it.

    Empty when either p99 was not measured: too few requests, or it is a failure.
    """
    whole_ms = change_ms(all_requests(before), all_requests(now))
    ok = _step(everything(before), everything(now))
    if whole_ms is None or ok is None:
        return ()
    parts = [Part(FAILURES, whole_ms - ok.change_ms, _failure_note(before, now))]
    missing = []
    steady = _outside_cold(before, now)
    if steady is None:
        missing.append("cold starts are in it: deploys are not known, or too little lies outside")
    else:
        note = "requests in cold windows taken out on both sides"
        parts.append(Part(COLD_START, ok.change_ms - steady.change_ms, note))
    last = steady or ok
    mix = workload_mix(last.before, last.now, P99)
    missing += _unmixed(mix)
    known = [ms for ms in (mix.cohort_ms, mix.shape_ms) if ms is not None]
    if known:
        parts.append(Part(WORKLOAD, sum(known), "; ".join(_mix_notes(mix))))
    rest_ms = whole_ms - sum(part.delta_ms for part in parts)
    note = "; ".join(["what the baseline's system does not explain of today's requests", *missing])
    return (*parts, Part(REGRESSION, rest_ms, note))


def change_ms(before: Side, now: Side) -> float | None:
    """Return the change of the p99; None when one side has too few requests, or a failure there."""
    if not (before.measures(P99) and now.measures(P99)):
        return None
    old, new = before.quantile_ms(P99), now.quantile_ms(P99)
    return None if old is None or new is None else new - old


def _step(before: Population, now: Population) -> _Step | None:
    change = change_ms(answered(before.total), answered(now.total))
    return None if change is None else _Step(before, now, change)


def _outside_cold(before: Evidence, now: Evidence) -> _Step | None:
    """Return the step without cold windows; None when nobody knows them."""
    known = before.deploys_known and now.deploys_known
    if not (known or before.cold_windows or now.cold_windows):
        return None
    return _step(outside_cold(before), outside_cold(now))


def _failure_note(before: Evidence, now: Evidence) -> str:
    shares = [_failed_pct(all_requests(one)) for one in (before, now)]
    return "failures, slower than all others: {:.3g} % before, {:.3g} % now".format(*shares)


def _failed_pct(side: Side) -> float:
    return 100 * side.failed / side.n


def _unmixed(mix: Mix) -> Iterable[str]:
    if mix.cohort_ms is None:
        yield "the mix of cohorts is in it: there are none"
    if mix.shape_ms is None and mix.covariates:
        few = min(mix.rows)
        yield f"{', '.join(mix.covariates)} are in it: {few:,} sampled requests, needs 1,000"
    elif mix.shape_ms is None:
        yield "the input shape is in it: no covariate on both sides"


def _mix_notes(mix: Mix) -> Iterable[str]:
    if mix.cohort_ms is not None:
        yield f"shares of the cohorts {mix.cohort_ms:+.3g} ms, by their sketches"
    if mix.shape_ms is not None:
        rows = " and ".join(f"{rows:,}" for rows in mix.rows)
        yield (
            f"{', '.join(mix.covariates)} {mix.shape_ms:+.3g} ms, an estimate from "
            f"{rows} sampled requests"
        )
    if mix.new_share > 0:
        yield f"{100 * mix.new_share:.3g} % are of cohorts that are new, and taken as they are"
