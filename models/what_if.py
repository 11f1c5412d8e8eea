"""What would a fix save of the p99? Measured requests, replayed with the fix applied.

Where sums tell exactly (a cohort or the cold windows left out, the slots of less load) the
sketches answer; else the uniform sample is replayed through the fit of the stage. Each answer is
an estimate that holds under the assumption which its basis states. Failed requests have no
duration: all figures are of the successful ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.cuts import cut_of, quantile_of
from tailbudget.models.figures import figure
from tailbudget.models.fix_case import Case
from tailbudget.models.hit_ratio import more_hits
from tailbudget.models.load import lower_load
from tailbudget.models.paired_p99 import (
    Saving,
    replayed_saving,
    sketched_saving,
    whole,
)
from tailbudget.models.ranks import ranks
from tailbudget.models.replay import (
    best_fit,
    changed_total,
    follow,
    matching,
    side_by_side,
)
from tailbudget.models.sampled import FAST, in_band
from tailbudget.models.sketch import stage_counts
from tailbudget.models.without import without_cohort
from tailbudget.schemas.catalogue import Effect
from tailbudget.schemas.summary import TOTAL

Floats = NDArray[np.float64]

_P95: Final = Fraction(95, 100)
_FEWEST_FAST: Final = 20  # so that the p95 of the fast band is not its maximum
_SEED: Final = 1_960


def what_if(case: Case, effect: Effect) -> Saving:
    """Return what an effect saves of the p99, between 0 and what the stage takes.

    Returns:
        None as the saving, with the reason, when nothing measured tells.
    """
    return _WAYS[effect.kind](case, effect)


def _unknown(_: Case, effect: Effect) -> Saving:
    return Saving(None, None, effect.assumption or "nothing measured tells its effect")


def _cap(case: Case, effect: Effect) -> Saving:
    cut = effect.at
    if cut is None and case.cause.covariate in case.rows.covariates:
        x = case.rows.of(case.cause.covariate)
        cut = cut_of(x, case.weight, lambda at: _capped(case, at), case.target_ms)
    then = None if cut is None else _capped(case, cut)
    if cut is None or then is None:
        return _no_fit(case)
    return _rows(case, then, f"{case.cause.covariate} capped at {figure(cut, 6)}", effect)


def _capped(case: Case, cut: float) -> Floats | None:
    return _followed(case, lambda x: np.minimum(x, cut))


def _round_trips(case: Case, effect: Effect) -> Saving:
    per_call = effect.per_call or 1.0
    then = _followed(case, lambda x: np.where(x > 1, np.ceil(x / per_call), x))
    if then is None:
        return _no_fit(case)
    what = f"one call for up to {figure(per_call, 6)} of {case.cause.covariate}"
    return _rows(case, then, what, effect)


def _followed(case: Case, change: Callable[[Floats], Floats]) -> Floats | None:
    """Return the totals were the covariate changed; None without a fit of the stage on it."""
    covariate = case.cause.covariate
    fitted = best_fit(case.evidence.total, case.stage, covariate)
    if fitted is None or covariate not in case.rows.covariates:
        return None
    x = case.rows.of(covariate)
    then = follow(case.rows.stage(case.stage), fitted, x, change(x))
    return changed_total(case.rows, case.lay, case.stage, then)


def _no_fit(case: Case) -> Saving:
    covariate = case.cause.covariate or "an input-shape dimension"
    return Saving(None, None, f"no fit of {case.stage or 'a stage'} on {covariate}")


def _route_above(case: Case, effect: Effect) -> Saving:
    rows, covariate = case.rows, case.cause.covariate
    total = rows.stage(TOTAL)
    if covariate not in rows.covariates:
        return Saving(None, None, "no input-shape dimension was found")
    x = rows.of(covariate)
    cut = effect.at
    if cut is None:
        cut = cut_of(x, case.weight, lambda at: np.where(x > at, np.nan, total), case.target_ms)
    if cut is None:
        return Saving(None, None, f"no sampled request carries {covariate}")
    stays = ~(x > cut)
    share = 100 * float(case.weight[~stays].sum() / case.weight.sum())
    basis = (
        f"p99 of those that stay, {covariate} above {figure(cut, 6)} ({share:.1f} %) routed away"
    )
    replayed = whole(total, total, stays.astype(np.float64))
    return replayed_saving(replayed, case.layers, _basis(case, basis, effect))


def _route_cohort(case: Case, effect: Effect) -> Saving:
    kept = without_cohort(case.evidence, case.cause.cohort)
    if kept is None:
        return Saving(None, None, "no single cohort carries the tail")
    everything = stage_counts(case.evidence.total, TOTAL)
    basis = f"p99 of those that stay without {case.cause.cohort}, from all requests"
    return sketched_saving(kept, everything - kept, basis + _assumed(effect))


def _drop_cold(case: Case, effect: Effect) -> Saving:
    if case.evidence.warm is None:
        return Saving(None, None, "no deploy or scale-up is known: cold and warm cannot be told")
    warm = stage_counts(case.evidence.warm, TOTAL)
    everything = stage_counts(case.evidence.total, TOTAL)
    basis = "p99 outside of the cold windows, from all requests"
    return sketched_saving(warm, np.maximum(everything - warm, 0), basis + _assumed(effect))


def _lower_load(case: Case, effect: Effect) -> Saving:
    return lower_load(case.evidence, effect.factor or 1.0, _assumed(effect))


def _hit_ratio(case: Case, effect: Effect) -> Saving:
    if not case.stage:
        return _no_stage()
    replayed = more_hits(case.rows, case.lay, case.stage, case.cause.covariate, effect.to or 1.0)
    if replayed is None:
        return Saving(None, None, "no hit ratio was measured for each request")
    what = f"hits raised to {effect.to:.0%}"
    return replayed_saving(replayed, case.layers, _basis(case, what, effect))


def _scale(case: Case, effect: Effect) -> Saving:
    if effect.factor is None:
        return _unknown(case, effect)
    if not case.stage:
        return _no_stage()
    then = changed_total(
        case.rows, case.lay, case.stage, case.rows.stage(case.stage) * effect.factor
    )
    return _rows(case, then, f"{case.stage} at {figure(effect.factor, 6)} of its time", effect)


def _cap_stage(case: Case, effect: Effect) -> Saving:
    limit = _stage_quantile(case, effect)
    if limit is None:
        return _no_stage()
    then = changed_total(
        case.rows, case.lay, case.stage, np.minimum(case.rows.stage(case.stage), limit)
    )
    what = f"{case.stage} cut at its p{effect.percentile:g}, {figure(limit)} ms,"
    return _rows(case, then, what, effect)


def _level(case: Case, effect: Effect) -> Saving:
    if not case.stage:
        return _no_stage()
    stage = case.rows.stage(case.stage)
    fast = in_band(case.evidence.total, case.rows, FAST)
    limit = quantile_of(stage[fast], case.weight[fast], _P95)
    if limit is None or fast.sum() < _FEWEST_FAST:
        return Saving(None, None, f"{fast.sum()} sampled fast requests; it takes {_FEWEST_FAST}")
    then = changed_total(case.rows, case.lay, case.stage, np.minimum(stage, limit))
    return _rows(
        case, then, f"{case.stage} no longer than the fast p95, {figure(limit)} ms,", effect
    )


def _hedge(case: Case, effect: Effect) -> Saving:
    """Replay the second tries of J. Dean and L. A. Barroso, The Tail at Scale (2013)."""
    wait = _stage_quantile(case, effect)
    if wait is None:
        return _no_stage()
    stage = case.rows.stage(case.stage)
    present = np.flatnonzero(~np.isnan(stage))
    second = np.full(len(stage), np.nan)
    second[present] = wait + stage[np.random.default_rng(_SEED).permutation(present)]
    then = changed_total(case.rows, case.lay, case.stage, np.minimum(stage, second))
    what = f"second try of {case.stage} after {figure(wait)} ms (its p{effect.percentile:g})"
    return _rows(case, then, what, effect)


def beside(case: Case, effect: Effect) -> tuple[str, ...]:
    """Return the other stages that an effect would run at the same time."""
    return matching([s for s in case.lay.serial if s != case.stage], effect.beside)


def _parallel(case: Case, effect: Effect) -> Saving:
    others = beside(case, effect)
    if case.stage not in case.lay.serial:
        return Saving(None, None, f"{case.stage or 'the cause'} is no stage that follows others")
    if not others:
        return Saving(None, None, f"no other stage to run beside {case.stage}")
    then = side_by_side(case.rows, case.lay, (case.stage, *others))
    return _rows(case, then, f"{case.stage} beside {', '.join(others)}", effect)


def _stage_quantile(case: Case, effect: Effect) -> float | None:
    if not case.stage or effect.percentile is None:
        return None
    quantile = Fraction(str(effect.percentile)) / 100
    return ranks(case.evidence.total, case.stage).quantile_ms(quantile)


def _no_stage() -> Saving:
    return Saving(None, None, "no stage was measured that it acts through")


def _rows(case: Case, then_ms: Floats, what: str, effect: Effect) -> Saving:
    replayed = whole(case.rows.stage(TOTAL), then_ms)
    return replayed_saving(replayed, case.layers, _basis(case, what, effect))


def _basis(case: Case, what: str, effect: Effect) -> str:
    return f"{what} in {len(case.rows):,} sampled requests{_assumed(effect)}"


def _assumed(effect: Effect) -> str:
    return f"; assumed: {effect.assumption}" if effect.assumption else ""


_WAYS: Final[Mapping[str, Callable[[Case, Effect], Saving]]] = {
    "none": _unknown,
    "cap_covariate": _cap,
    "round_trips": _round_trips,
    "route_above": _route_above,
    "route_cohort": _route_cohort,
    "drop_cold": _drop_cold,
    "lower_load": _lower_load,
    "hit_ratio": _hit_ratio,
    "scale_stage": _scale,
    "cap_stage": _cap_stage,
    "level_stage": _level,
    "hedge": _hedge,
    "parallel": _parallel,
}
