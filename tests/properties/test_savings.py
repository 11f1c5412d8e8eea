"""Whatever the service and the fix, a saving is between nothing and what the stage has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from found import cause_of, found_of
from gathered import gathered
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.evidence import Evidence
from tailbudget.models.fix_case import case_of
from tailbudget.models.optimizations import optimizations
from tailbudget.models.what_if import what_if
from tailbudget.schemas.catalogue import Effect, load_catalogue
from tailbudget.schemas.proposals import CauseName
from tailbudget.schemas.sections import StageRole
from tailbudget.schemas.slo import SloTarget

N = 1_200
EFFECTS = (
    Effect(kind="cap_covariate"),
    Effect(kind="cap_covariate", at=3),
    Effect(kind="round_trips", per_call=20),
    Effect(kind="scale_stage", factor=0.3),
    Effect(kind="cap_stage", percentile=90),
    Effect(kind="level_stage"),
    Effect(kind="hedge", percentile=95),
    Effect(kind="hit_ratio", to=0.95),
)
MOVING = (*EFFECTS, Effect(kind="route_above"), Effect(kind="route_cohort"))


def service(seed: int, spread: float, slope: float, overlap: float) -> Evidence:
    rng = np.random.default_rng(seed)
    x = np.ceil(rng.lognormal(1, spread, N))
    fetch = rng.gamma(2, 4, N) + slope * x * (rng.random(N) > 0.2)
    model, hit = rng.lognormal(3, 0.5, N), rng.random(N) < 0.6
    fetch *= np.where(hit, 0.4, 1.0)
    together = fetch + model - overlap * np.minimum(fetch, model)
    columns: dict[str, Any] = {
        "total_ms": together + rng.gamma(1, 2, N),
        "fetch_ms": np.where(rng.random(N) < 0.05, np.nan, fetch),
        "model_ms": model,
        "batch_size": np.where(rng.random(N) < 0.05, np.nan, x),
        "cache_hit": hit.astype(float),
        "route": np.where(x > 6, "bulk", "card").tolist(),
    }
    return gathered(columns, covariates=("batch_size", "cache_hit"), cohort_dims=("route",))


SERVICES = st.builds(
    service,
    seed=st.integers(0, 2**32 - 1),
    spread=st.floats(0.1, 1.5),
    slope=st.floats(-1, 5),
    overlap=st.sampled_from([0.0, 0.5, 1.0]),
)
ROLES = st.sampled_from([{}, {"fetch": StageRole.PARALLEL, "model": StageRole.PARALLEL}])


@settings(max_examples=12, deadline=None)
@given(evidence=SERVICES, roles=ROLES, target=st.sampled_from([None, 20.0, 60.0, 200.0]))
def test_savings_lie_between_nothing_and_what_the_stage_has(
    evidence: Evidence, roles: dict[str, StageRole], target: float | None
) -> None:
    """No fix of a stage saves more than its longest time, and the interval holds the estimate."""
    slo = SloTarget(p99_ms=target) if target else None
    cause = cause_of(CauseName.INPUT_SHAPE, "fetch", covariate="batch_size", cohort="route=bulk")
    case = case_of(evidence, found_of(evidence, slo, roles=roles), cause)
    most = float(np.nanmax(case.rows.stage("fetch")))
    for effect in MOVING:
        got = what_if(case, effect)
        assert got.basis
        if got.saved_ms is None:
            assert got.interval_ms is None
            continue
        assert got.interval_ms is not None
        low, high = got.interval_ms
        assert 0 <= low <= got.saved_ms <= high
        if effect in EFFECTS:
            assert high <= most * (1 + 1e-9)


@settings(max_examples=6, deadline=None)
@given(evidence=SERVICES, name=st.sampled_from([n for n in CauseName if n != "unknown"]))
def test_fixes_are_ranked_by_milliseconds_an_hour(evidence: Evidence, name: CauseName) -> None:
    """The highest-leverage fix comes first, those without an estimate last, and none twice."""
    cause = cause_of(name, "fetch", covariate="batch_size", cohort="route=bulk")
    fixes = optimizations(evidence, found_of(evidence), [cause], load_catalogue())
    assert fixes
    leverage = [fix.ms_per_hour for fix in fixes]
    known = [value for value in leverage if value is not None]
    assert leverage[: len(known)] == sorted(known, reverse=True)
    assert len({fix.key for fix in fixes}) == len(fixes)
    assert {fix.cause for fix in fixes} == {name}
    for fix in fixes:
        if fix.p99_saved_ms is not None:
            assert fix.ms_per_hour == pytest.approx(fix.p99_saved_ms / fix.hours)
    again = optimizations(evidence, found_of(evidence), [cause], load_catalogue())
    assert again == fixes
