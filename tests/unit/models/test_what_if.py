"""What a fix saves, against the same arithmetic on the raw rows.

Up to 2,048 requests the sample holds all of them, so that the replay has to be exact.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from found import cause_of, found_of
from gathered import T0_NS, gathered
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.fix_case import case_of
from tailbudget.models.paired_p99 import Saving
from tailbudget.models.what_if import what_if
from tailbudget.schemas.catalogue import Effect
from tailbudget.schemas.proposals import Cause, CauseName
from tailbudget.schemas.sections import ColdWindow, StageRole
from tailbudget.schemas.slo import SloTarget

N = 2_000
SKETCH = 2 / 128  # two percentiles, each read off the sketch
SHAPE = cause_of(CauseName.INPUT_SHAPE, "fetch", covariate="batch_size")
FETCH = cause_of(CauseName.EXTERNAL_DEPENDENCY, "fetch")


def p99(values: Any) -> float:
    ordered = np.sort(np.asarray(values))
    return float(ordered[math.ceil(0.99 * len(ordered)) - 1])


class Service:
    """Requests whose fetch grows with a batch, beside a model and a remainder."""

    def __init__(self, n: int = N, seed: int = 5) -> None:
        rng = np.random.default_rng(seed)
        self.batch: NDArray[np.float64] = np.ceil(rng.lognormal(1, 1.2, n))
        self.fetch = 3 + 2 * self.batch + rng.gamma(2, 3, n)
        self.model = rng.gamma(20, 2, n)
        self.total = self.fetch + self.model + rng.gamma(2, 2, n)

    def evidence(self, **more: Any) -> Evidence:
        columns = {
            "total_ms": self.total,
            "fetch_ms": self.fetch,
            "model_ms": self.model,
            "batch_size": self.batch,
        }
        return gathered(columns | more, covariates=("batch_size", "cache_hit"))

    def slope(self) -> float:
        return float(np.polyfit(self.batch, self.fetch, 1)[0])


def saving(
    evidence: Evidence,
    cause: Cause,
    effect: Effect,
    slo: SloTarget | None = None,
    roles: dict[str, StageRole] | None = None,
) -> Saving:
    return what_if(case_of(evidence, found_of(evidence, slo, roles=roles), cause), effect)


def assert_saves(got: Saving, wanted: float, relative: float = 1e-9) -> None:
    assert got.saved_ms is not None
    assert got.saved_ms == pytest.approx(wanted, rel=relative)
    assert got.interval_ms is not None
    assert got.interval_ms[0] <= got.saved_ms <= got.interval_ms[1]


def test_capping_a_covariate_takes_the_fitted_milliseconds_off() -> None:
    """Each request above the cap loses what the fit says that the rest of its rows took."""
    s = Service()
    # A line: the parabola is chosen only where it explains more.
    s.fetch = 3 + 2 * s.batch
    s.total = s.fetch + s.model
    then = s.total - 2 * np.maximum(s.batch - 8, 0)
    got = saving(s.evidence(), SHAPE, Effect(kind="cap_covariate", at=8, assumption="so it is"))
    assert_saves(got, p99(s.total) - p99(then), 1e-6)
    assert got.basis == "batch_size capped at 8 in 2,000 sampled requests; assumed: so it is"


def test_what_the_fit_does_not_explain_stays() -> None:
    """With noise, the milliseconds taken off are those of the better of line and parabola."""
    s = Service()
    line, curve = np.polyfit(s.batch, s.fetch, 1), np.polyfit(s.batch, s.fetch, 2)
    left = [np.var(s.fetch - np.polyval(fit, s.batch)) for fit in (line, curve)]
    better = curve if left[1] / (N - 3) < left[0] / (N - 2) else line
    gained = np.polyval(better, s.batch) - np.polyval(better, np.minimum(s.batch, 5))
    then = s.total - np.clip(gained, 0, s.fetch)
    got = saving(s.evidence(), SHAPE, Effect(kind="cap_covariate", at=5))
    assert_saves(got, p99(s.total) - p99(then), 1e-6)


def test_fewer_round_trips_leave_one_call_for_each_fifty() -> None:
    """A request of n rows takes as long as one of n / 50 rows did, rounded up."""
    s = Service()
    s.fetch = 3 + 2 * s.batch
    s.total = s.fetch + s.model
    then = s.total - 2 * (s.batch - np.ceil(s.batch / 50))
    got = saving(s.evidence(), SHAPE, Effect(kind="round_trips", per_call=50))
    assert_saves(got, p99(s.total) - p99(then), 1e-6)


def test_routing_long_requests_away_leaves_the_p99_of_the_others() -> None:
    """The requests above the cut are not here any more."""
    s = Service()
    got = saving(s.evidence(), SHAPE, Effect(kind="route_above", at=12))
    assert_saves(got, p99(s.total) - p99(s.total[s.batch <= 12]))
    assert f"above 12 ({100 * np.mean(s.batch > 12):.1f} %) routed away" in got.basis


def test_the_cut_is_the_largest_that_meets_the_target() -> None:
    """Without a cut of one's own, as few requests as possible are touched."""
    s = Service()
    ordered = np.sort(s.batch)
    cuts = [ordered[math.ceil(share * N) - 1] for share in (0.99, 0.98, 0.95, 0.90)]
    target = p99(s.total[s.batch <= cuts[2]]) + 0.01
    assert p99(s.total[s.batch <= cuts[1]]) > target
    got = saving(s.evidence(), SHAPE, Effect(kind="route_above"), SloTarget(p99_ms=target))
    assert_saves(got, p99(s.total) - p99(s.total[s.batch <= cuts[2]]))
    hopeless = saving(s.evidence(), SHAPE, Effect(kind="route_above"), SloTarget(p99_ms=0.1))
    assert_saves(hopeless, p99(s.total) - p99(s.total[s.batch <= cuts[3]]))


def test_a_stage_scaled_or_cut_takes_that_much_off() -> None:
    """Half a stage, or a stage that ends at its p95, shortens each request by the difference."""
    s = Service()
    half = saving(s.evidence(), FETCH, Effect(kind="scale_stage", factor=0.5))
    assert_saves(half, p99(s.total) - p99(s.total - s.fetch / 2))
    got = saving(s.evidence(), FETCH, Effect(kind="cap_stage", percentile=95))
    exact = np.sort(s.fetch)[math.ceil(0.95 * N) - 1]
    wanted = p99(s.total) - p99(s.total - np.maximum(s.fetch - exact, 0))
    assert got.saved_ms == pytest.approx(wanted, abs=exact / 128 + 1e-9)


def test_a_factor_that_nobody_measured_estimates_nothing() -> None:
    """Without a benchmark, a smaller model has no number, and the basis asks for it."""
    got = saving(
        Service().evidence(), FETCH, Effect(kind="scale_stage", assumption="give the factor")
    )
    assert got == Saving(None, None, "give the factor")


def test_stages_side_by_side_take_as_long_as_the_longest() -> None:
    """Two lookups in parallel save the shorter of the two."""
    s = Service()
    lookup = np.random.default_rng(6).gamma(3, 10, N)
    total = s.total + lookup
    evidence = s.evidence(lookup_ms=lookup, total_ms=total)
    got = saving(evidence, FETCH, Effect(kind="parallel", beside=("*lookup*",)))
    assert_saves(got, p99(total) - p99(total - np.minimum(s.fetch, lookup)))
    alone = saving(evidence, FETCH, Effect(kind="parallel", beside=("*http*",)))
    assert alone.saved_ms is None
    assert "no other stage" in alone.basis


def test_a_branch_beside_one_as_long_saves_nothing() -> None:
    """Two calls run in parallel and take equally long: making one faster changes nothing.

    Where nobody knows that they do, no request gets shorter than its longest other stage: only
    the half millisecond that no stage covers is in question.
    """
    one = np.random.default_rng(7).lognormal(4, 0.8, N)
    evidence = gathered({"total_ms": one + 0.5, "fetch_ms": one, "lookup_ms": one})
    roles = {"fetch": StageRole.PARALLEL, "lookup": StageRole.PARALLEL}
    half = Effect(kind="scale_stage", factor=0.5)
    assert saving(evidence, FETCH, half, roles=roles).saved_ms == 0
    assert saving(evidence, FETCH, half).saved_ms == pytest.approx(0.5)


def test_a_longer_branch_saves_until_the_other_is_the_longest() -> None:
    """Of parallel stages only the part beyond the next longest can be saved."""
    rng = np.random.default_rng(8)
    fetch, lookup = rng.gamma(4, 50, N), rng.gamma(4, 25, N)
    total = np.maximum(fetch, lookup) + 5
    evidence = gathered({"total_ms": total, "fetch_ms": fetch, "lookup_ms": lookup})
    roles = {"fetch": StageRole.PARALLEL, "lookup": StageRole.PARALLEL}
    got = saving(evidence, FETCH, Effect(kind="scale_stage", factor=0.1), roles=roles)
    assert_saves(got, p99(total) - p99(np.maximum(fetch / 10, lookup) + 5))


def test_a_stage_inside_a_container_saves_all_of_its_own() -> None:
    """The container gets shorter with it, and holds nothing back."""
    s = Service()
    evidence = s.evidence(handler_ms=s.fetch + s.model)
    roles = {"handler": StageRole.CONTAINER}
    got = saving(evidence, FETCH, Effect(kind="scale_stage", factor=0.5), roles=roles)
    assert_saves(got, p99(s.total) - p99(s.total - s.fetch / 2))


def test_hedging_replaces_slow_tries_by_second_ones() -> None:
    """A dependency that is slow once in fifty is hardly ever slow twice."""
    rng = np.random.default_rng(9)
    fetch = np.where(rng.random(N) < 0.02, 900.0, rng.gamma(20, 1, N))
    evidence = gathered({"total_ms": fetch + 10, "fetch_ms": fetch})
    got = saving(evidence, FETCH, Effect(kind="hedge", percentile=95))
    assert got.saved_ms is not None
    assert 820 < got.saved_ms < 880
    assert "second try of fetch after" in got.basis


def test_dropping_a_cohort_is_the_p99_of_all_others() -> None:
    """From the sketches of all requests, however few are sampled."""
    s = Service(6_000)
    route = np.where(s.batch > 12, "bulk", "card")
    columns = {"total_ms": s.total, "route": route.tolist(), "region": ["eu", "us"] * 3_000}
    evidence = gathered(columns, cohort_dims=("route", "region"), every_s=0.01)
    wanted = p99(s.total) - p99(s.total[route == "card"])
    for cohort in ("route=bulk", "route=bulk,region=eu", "route+region=bulk+eu"):
        inside = (route == "bulk") & (np.arange(6_000) % 2 == 0)
        if cohort != "route=bulk":
            wanted = p99(s.total) - p99(s.total[~inside])
        got = saving(
            evidence, cause_of(CauseName.INPUT_SHAPE, cohort=cohort), Effect(kind="route_cohort")
        )
        assert got.saved_ms is not None
        assert got.saved_ms == pytest.approx(wanted, abs=SKETCH * p99(s.total))
        assert got.interval_ms is not None
        assert got.interval_ms[0] <= got.saved_ms <= got.interval_ms[1]
    absent = cause_of(CauseName.INPUT_SHAPE, cohort="route=none")
    assert saving(evidence, absent, Effect(kind="route_cohort")).saved_ms is None


def test_removing_cold_windows_is_the_filtered_p99() -> None:
    """Nothing but warm requests is left; without known deploys nothing can be told."""
    s = Service()
    cold = np.arange(N) < 300
    total = s.total + np.where(cold, 2_000.0, 0.0)
    start = T0_NS // 10_000_000_000 * 10_000_000_000
    window = ColdWindow(start, start + 300 * 10**9, "v2", "deploy")
    evidence = gathered({"total_ms": total, "fetch_ms": s.fetch}, cold_windows=[window])
    cause = cause_of(CauseName.COLD_START)
    got = saving(evidence, cause, Effect(kind="drop_cold"))
    assert got.saved_ms == pytest.approx(p99(total) - p99(total[300:]), abs=SKETCH * p99(total))
    unknown = saving(s.evidence(), cause, Effect(kind="drop_cold"))
    assert unknown.saved_ms is None
    assert "no deploy" in unknown.basis


def test_more_hits_turn_a_share_of_the_misses() -> None:
    """At 70 % hits, raising them to 90 % turns two thirds of the misses into median hits."""
    rng = np.random.default_rng(10)
    hit = (rng.random(N) < 0.7).astype(float)
    fetch = np.where(hit == 1, 2.0, rng.gamma(4, 100, N))
    evidence = gathered(
        {"total_ms": fetch + 20, "fetch_ms": fetch, "cache_hit": hit}, covariates=("cache_hit",)
    )
    cause = cause_of(CauseName.CACHE_MISS, "fetch", covariate="cache_hit")
    got = saving(evidence, cause, Effect(kind="hit_ratio", to=0.9))
    missed, ratio = np.sort(fetch[hit == 0]), hit.mean()
    stays = 1 - (0.9 - ratio) / (1 - ratio)
    beyond = 0.01 * N / stays  # so many of the misses lie beyond the new p99
    then = missed[len(missed) - 1 - math.floor(beyond)]
    assert_saves(got, p99(fetch) - then, 0.02)
    reached = saving(evidence, cause, Effect(kind="hit_ratio", to=0.5))
    assert reached.saved_ms == 0


def test_misses_count_like_hits() -> None:
    """A column of misses tells the same as one of hits."""
    rng = np.random.default_rng(11)
    miss = (rng.random(N) < 0.3).astype(float)
    fetch = np.where(miss == 0, 2.0, rng.gamma(4, 100, N))
    got = [
        saving(
            gathered({"total_ms": fetch, "fetch_ms": fetch, name: value}, covariates=(name,)),
            cause_of(CauseName.CACHE_MISS, "fetch", covariate=name),
            Effect(kind="hit_ratio", to=0.9),
        ).saved_ms
        for name, value in (("cache_miss", miss), ("cache_hit", 1 - miss))
    ]
    assert got[0] == got[1] != 0


def test_too_few_requests_tell_nothing() -> None:
    """Below the thousand that a p99 takes there is no saving, but a reason."""
    s = Service(600)
    got = saving(s.evidence(), FETCH, Effect(kind="scale_stage", factor=0.5))
    assert got == Saving(None, None, "600 requests; a p99 takes 1,000")


def test_a_coarse_sample_still_has_the_exact_p99() -> None:
    """Of 40,000 requests a 20th is sampled; weighed by the sketch it is close to all of them."""
    s = Service(40_000)
    evidence = s.evidence()
    wanted = p99(s.total) - p99(s.total - s.fetch / 2)
    got = saving(evidence, FETCH, Effect(kind="scale_stage", factor=0.5))
    assert got.saved_ms == pytest.approx(wanted, rel=0.15)
    assert got.interval_ms is not None
    assert got.interval_ms[0] <= wanted <= got.interval_ms[1]
