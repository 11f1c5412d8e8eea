"""The two situations that every audit is measured by, on simulated logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from found import found_of
from known_causes import CLASSIFIER_SLO, FRAUD_SLO, classifier, classifier_cause, fraud, fraud_cause

from tailbudget.models.optimizations import optimizations
from tailbudget.models.recommendation import recommendation
from tailbudget.schemas.catalogue import load_catalogue


@pytest.mark.parametrize("seed", range(3))
def test_fraud_scoring_gets_a_batched_fetch_and_routing_until_then(seed: int) -> None:
    """Row-by-row lookups of a bulk route: fetch in batches first, route the bulk away meanwhile."""
    evidence, causes = fraud(seed=seed), [fraud_cause()]
    found = found_of(evidence, FRAUD_SLO)
    assert found.tail_driver is not None
    assert found.tail_driver.stage == "feature_lookup"
    fixes = optimizations(evidence, found, causes, load_catalogue())
    assert fixes[0].key == "batched_fetch"
    assert next(fix.key for fix in fixes if fix.horizon == "short") == "route_bulk"
    got = recommendation(evidence, found, causes, fixes)
    assert got.choice == "fix_tail"
    assert got.first_step == fixes[0].fix
    assert got.mitigation == "Route bulk traffic to a pool of its own, with a target of its own"
    assert "feature_lookup" in got.reason
    assert sum(budget.p99_ms for budget in got.budgets) == pytest.approx(200)
    assert got.budgets[0].stage == "feature_lookup"


@pytest.mark.parametrize("seed", range(3))
def test_no_cache_is_recommended_where_no_hit_ratio_was_measured(seed: int) -> None:
    """A feature lookup looks like a case for a cache, but nobody knows what it would hit."""
    evidence = fraud(seed=seed)
    fixes = optimizations(
        evidence, found_of(evidence, FRAUD_SLO), [fraud_cause()], load_catalogue()
    )
    assert [fix.key for fix in fixes if "cache" in fix.key] == []


@pytest.mark.parametrize("factor", [None, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_long_inputs_are_treated_before_the_model(
    seed: int, factor: float | None, tmp_path: Path
) -> None:
    """Length-aware fixes rank above a model swap, though one that halves the time is at hand."""
    own = tmp_path / "fixes.yaml"
    effect = f"{{effect: {{factor: {factor}}}}}" if factor else "{}"
    own.write_text(f"fixes: {{smaller_model: {effect}}}\n", encoding="utf-8")
    evidence, causes = classifier(seed=seed), [classifier_cause()]
    found = found_of(evidence, CLASSIFIER_SLO)
    fixes = optimizations(evidence, found, causes, load_catalogue(own))
    keys = [fix.key for fix in fixes]
    assert set(keys[:2]) == {"limit_length", "route_long_inputs"}
    assert keys.index("smaller_model") > 1
    swap = fixes[keys.index("smaller_model")]
    assert (swap.p99_saved_ms is None) == (factor is None)


@pytest.mark.parametrize("seed", range(3))
def test_the_text_says_why_a_model_swap_would_not_help(seed: int) -> None:
    """Without the longest inputs the target is met; with them a model must be twice as fast."""
    evidence, causes = classifier(seed=seed), [classifier_cause()]
    found = found_of(evidence, CLASSIFIER_SLO)
    got = recommendation(
        evidence, found, causes, optimizations(evidence, found, causes, load_catalogue())
    )
    assert got.choice == "fix_tail"
    assert "A model swap would not help: 1.0 % of requests have sequence_length above" in got.reason
    assert "to reach 1,600 ms with them, requests would have to be 2." in got.reason
