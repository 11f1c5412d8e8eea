"""One choice, and the numbers that it rests on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from found import cause_of, found_of
from gathered import gathered

from tailbudget.models.evidence import Evidence
from tailbudget.models.optimizations import BAR, MOST, optimizations
from tailbudget.models.recommendation import recommendation
from tailbudget.schemas.catalogue import Catalogue, load_catalogue
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import Cause, CauseName, Recommendation
from tailbudget.schemas.sections import ColdStart
from tailbudget.schemas.slo import SloTarget

CATALOGUE = load_catalogue()
FETCH = cause_of(CauseName.EXTERNAL_DEPENDENCY, "fetch")


def service(n: int = 3_000, **more: Any) -> Evidence:
    """Return a service whose fetch is slow once in forty."""
    rng = np.random.default_rng(20)
    fetch = np.where(rng.random(n) < 0.025, rng.gamma(20, 20, n), rng.gamma(4, 3, n))
    model = rng.gamma(20, 2, n)
    return gathered({"total_ms": fetch + model, "fetch_ms": fetch, "model_ms": model} | more)


def recommended(evidence: Evidence, found: Findings, *causes: Cause) -> Recommendation:
    fixes = optimizations(evidence, found, causes, CATALOGUE)
    return recommendation(evidence, found, causes, fixes)


def test_a_met_target_is_kept() -> None:
    """With room in every percentile there is nothing to do, whatever cause is seen."""
    evidence = service()
    slo = SloTarget(p50_ms=500, p99_ms=5_000)
    got = recommended(evidence, found_of(evidence, slo), FETCH)
    assert (got.choice, got.first_step, got.mitigation) == ("keep", "", "")
    assert "of 5,000 ms" in got.reason
    assert [row.percentile for row in got.supported] == ["p50", "p95", "p99"]


def test_a_tail_with_a_cause_is_fixed() -> None:
    """The first step is the highest-leverage fix, with its estimate in the reason."""
    evidence = service()
    found = found_of(evidence, SloTarget(p99_ms=250))
    fixes = optimizations(evidence, found, [FETCH], CATALOGUE)
    got = recommendation(evidence, found, [FETCH], fixes)
    assert got.choice == "fix_tail"
    assert got.first_step == fixes[0].fix
    assert f"{fixes[0].p99_saved_ms:,.4g} ms of p99 (estimate" in got.reason
    assert got.mitigation in {fix.fix for fix in fixes if fix.horizon == "short"}


def test_what_cannot_be_judged_is_said_beside_what_is_met() -> None:
    """Of 500 requests p50 is judged, and p99 is named as not."""
    evidence = service(500)
    got = recommended(evidence, found_of(evidence, SloTarget(p50_ms=500, p99_ms=5_000)), FETCH)
    assert got.choice == "keep"
    assert "p50" in got.reason.partition("Not judged:")[0]
    assert "p99: insufficient (n=500" in got.reason.partition("Not judged:")[2]


@pytest.mark.parametrize(
    ("causes", "why"),
    [
        ([cause_of(CauseName.UNKNOWN, missing=["Record cache hits"])], "No cause"),
        ([cause_of(CauseName.EXTERNAL_DEPENDENCY, "fetch", score=BAR - 0.01)], "No cause"),
    ],
)
def test_no_named_cause_means_measuring_first(causes: list[Cause], why: str) -> None:
    """No fix is named without a cause above the bar; the first step is what is missing."""
    evidence = service()
    got = recommended(evidence, found_of(evidence, SloTarget(p99_ms=250)), *causes)
    assert got.choice == "measure_first"
    assert why in got.reason
    assert got.first_step in ("Record cache hits", "Record the stages of each request")
    assert got.mitigation == ""


def test_no_stages_means_measuring_first() -> None:
    """Without stage timings nothing can be attributed."""
    evidence = gathered({"total_ms": np.random.default_rng(21).lognormal(4, 1, 2_000)})
    got = recommended(evidence, found_of(evidence, SloTarget(p99_ms=10)), FETCH)
    assert got.choice == "measure_first"
    assert got.first_step == "Record the stages of each request"


def test_too_few_requests_mean_measuring_first() -> None:
    """What cannot be judged is neither kept nor fixed."""
    evidence = service(60)
    got = recommended(evidence, found_of(evidence, SloTarget(p99_ms=50_000)), FETCH)
    assert got.choice == "measure_first"
    assert "Too few requests" in got.reason


def test_a_target_below_the_medians_is_renegotiated() -> None:
    """No fix of a tail reaches a p99 below what the stages take when nothing is slow."""
    evidence = service()
    got = recommended(evidence, found_of(evidence, SloTarget(p99_ms=30)), FETCH)
    assert got.choice == "renegotiate_slo"
    assert "medians alone add up to" in got.reason
    assert "supports a p99 of" in got.reason


def test_a_target_beyond_all_savings_is_renegotiated() -> None:
    """When every estimate together leaves p99 above the target, the target is the matter."""
    rng = np.random.default_rng(22)
    n = 3_000
    fetch, model = rng.gamma(30, 0.5, n), rng.lognormal(5, 0.6, n)
    evidence = gathered({"total_ms": fetch + model, "fetch_ms": fetch, "model_ms": model})
    got = recommended(evidence, found_of(evidence, SloTarget(p99_ms=400)), FETCH)
    assert got.choice == "renegotiate_slo"
    assert "which leaves" in got.reason


def test_waiting_that_rises_with_load_takes_capacity() -> None:
    """Contention that follows the load is answered by capacity, with both p99 in the reason."""
    rng = np.random.default_rng(23)
    stamps, total, queue = [], [], []
    for slot in range(120):
        load = 1 + 1.5 * (1 - math.cos(2 * math.pi * slot / 40))
        count = rng.poisson(100 * load)
        wait = rng.gamma(1, 4 * load**2, count)
        stamps += (1_772_445_600 + slot * 10 + np.sort(rng.random(count)) * 10).tolist()
        queue += wait.tolist()
        total += (wait + rng.gamma(20, 1, count)).tolist()
    columns = {
        "total_ms": total,
        "queue_ms": queue,
        "model_ms": [t - q for t, q in zip(total, queue, strict=True)],
        "timestamp": stamps,
    }
    evidence = gathered(columns)
    contention = cause_of(CauseName.CONTENTION, "queue")
    found = found_of(evidence, SloTarget(p99_ms=100))
    fixes = optimizations(evidence, found, [contention], CATALOGUE)
    got = recommendation(evidence, found, [contention], fixes)
    assert got.choice == "add_capacity"
    assert "in the calmer half" in got.reason
    assert len(got.load) == 10
    capacity = next(fix for fix in fixes if fix.key == "extra_capacity")
    assert capacity.p99_saved_ms is not None
    assert capacity.p99_saved_ms > 50
    assert recommended(evidence, found, FETCH).choice != "add_capacity"


def test_cold_starts_take_warm_capacity() -> None:
    """When the target is met outside of cold windows, warm capacity is what lacks."""
    evidence = service()
    cold = ColdStart((), 100, 400.0, 90.0, "cold_start", (), "")
    found = found_of(evidence, SloTarget(p99_ms=250), cold_start=cold)
    got = recommended(evidence, found, cause_of(CauseName.COLD_START))
    assert got.choice == "add_capacity"
    assert "outside of cold windows 90 ms" in got.reason


def test_failures_are_not_mended_by_faster_answers() -> None:
    """When more requests fail than p99 allows, the reason says that no estimate counts them."""
    status = ["error" if i % 50 == 0 else "ok" for i in range(3_000)]
    evidence = service(status=status)
    got = recommended(evidence, found_of(evidence, SloTarget(p99_ms=250)), FETCH)
    assert got.choice == "fix_tail"
    assert "2.00 % of the requests failed, more than p99 allows" in got.reason


def test_both_horizons_survive_a_long_catalogue() -> None:
    """Of many quick mitigations, the ranking still names one long-term fix."""
    quick = CATALOGUE.fixes["timeout_fallback"]
    long = CATALOGUE.fixes["bulkhead"]
    many = {f"quick_{i}": quick.model_copy(update={"hours": 1 + i}) for i in range(MOST + 4)}
    catalogue = Catalogue(fixes={**many, "bulkhead": long})
    evidence = service()
    fixes = optimizations(evidence, found_of(evidence), [FETCH], catalogue)
    assert len(fixes) == MOST
    assert fixes[-1].key == "bulkhead"
    assert [fix.key for fix in fixes[:2]] == ["quick_0", "quick_1"]


def test_a_ranking_of_one_horizon_keeps_its_length() -> None:
    """Where the catalogue has no mitigation, none is made up and no fix is lost for it."""
    long = CATALOGUE.fixes["bulkhead"]
    catalogue = Catalogue(fixes={f"long_{i}": long for i in range(MOST + 4)})
    evidence = service()
    fixes = optimizations(evidence, found_of(evidence), [FETCH], catalogue)
    assert len(fixes) == MOST


def test_a_cache_needs_a_measured_hit_ratio() -> None:
    """The cause alone recommends no cache; with hits measured it does, with an estimate."""
    rng = np.random.default_rng(24)
    n = 3_000
    hit = (rng.random(n) < 0.6).astype(float)
    fetch = np.where(hit == 1, 2.0, rng.gamma(4, 50, n))
    columns = {"total_ms": fetch + 20, "fetch_ms": fetch}
    cause = cause_of(CauseName.CACHE_MISS, "fetch", covariate="cache_hit")
    blind = gathered(columns)
    assert optimizations(blind, found_of(blind), [cause], CATALOGUE) == ()
    seen = gathered(columns | {"cache_hit": hit}, covariates=("cache_hit",))
    fixes = optimizations(seen, found_of(seen), [cause], CATALOGUE)
    assert fixes[0].key == "feature_cache"
    assert fixes[0].p99_saved_ms is not None
    assert fixes[0].p99_saved_ms > 0
