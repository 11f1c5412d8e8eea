"""What the causes say: figures, what speaks against them, and what to measure next."""

from __future__ import annotations

import numpy as np
import pytest
from findings import findings
from gathered import gathered
from simulated import Service
from situations import classifier, fraud_scoring
from tail_causes import (
    all_shards_slow,
    code_gets_slower,
    dependency_outage,
    long_while_lookup_is_down,
    lookup_of_one_region,
    one_shard_slow,
    queueing,
    replica_that_is_slow,
    stragglers,
    two_modes,
)

from tailbudget.models.causes import NAMED, Observation, causes
from tailbudget.models.causes.gap import parts, split
from tailbudget.models.causes.picture import Picture, picture_of
from tailbudget.models.evidence import Evidence
from tailbudget.schemas.proposals import Cause, CauseName
from tailbudget.schemas.slo import SloTarget

SEEDS = (1, 2, 3)


def named(evidence: Evidence, threshold: str | float = "p95") -> tuple[Cause, ...]:
    """Return the causes of an evidence."""
    return causes(evidence, findings(evidence, None, threshold))


def picture(evidence: Evidence) -> Picture:
    """Return the picture of an evidence that has one."""
    made = picture_of(evidence, findings(evidence))
    assert isinstance(made, Picture)
    return made


@pytest.mark.parametrize("threshold", ["p95", 200.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_fraud_scoring_is_slow_for_its_bulk_route(seed: int, threshold: str | float) -> None:
    """The lookup drives the tail, batches are the cause, and the route that sends them is named."""
    evidence = fraud_scoring(seed)
    found = findings(evidence, SloTarget(p99_ms=200.0), threshold)
    assert found.tail_driver is not None
    assert found.tail_driver.stage == "feature_lookup"
    first = causes(evidence, found)[0]
    assert first.cause is CauseName.INPUT_SHAPE
    assert (first.stage, first.covariate) == ("feature_lookup", "batch_size")
    assert first.cohort == "route=bulk"
    assert "% of the requests and 9" in " ".join(first.evidence)


@pytest.mark.parametrize("threshold", ["p95", "p99", 1_500.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_classifier_is_slow_for_its_long_inputs(seed: int, threshold: str | float) -> None:
    """Whatever the slow band, the length is the cause, and a faster model would not help."""
    evidence = classifier(seed)
    first = named(evidence, threshold)[0]
    assert first.cause is CauseName.INPUT_SHAPE
    assert (first.stage, first.covariate) == ("model_forward", "sequence_length")
    assert any("a faster model would not help" in text for text in first.evidence)
    assert any(text.startswith("R² of model_forward") for text in first.evidence)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_modes_without_a_flag_are_no_cache(seed: int) -> None:
    """Nothing is named; the hit ratio is what to measure."""
    (only,) = named(two_modes(Service(seed)))
    assert only.cause is CauseName.UNKNOWN
    assert any("measure the hit ratio of feature_lookup" in text for text in only.missing)
    assert any("has two modes: about " in text for text in only.against)


@pytest.mark.parametrize("seed", SEEDS)
def test_shards_that_are_slow_together_are_no_fanout(seed: int) -> None:
    """Nor is one shard that is slow by itself."""
    assert named(all_shards_slow(Service(seed)))[0].cause is CauseName.UNKNOWN
    one = named(one_shard_slow(Service(seed)))[0]
    assert one.cause is CauseName.UNKNOWN
    assert any("parallel stages" in text for text in one.against)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lookup_that_is_slow_for_one_region_is_told_with_it(seed: int) -> None:
    """It is not slow for all at once: no cause is named, the cohort is."""
    (only,) = named(lookup_of_one_region(Service(seed)))
    assert (only.cause, only.stage) == (CauseName.UNKNOWN, "feature_lookup")
    assert only.cohort == "region=ap"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_regression_is_told_with_its_time(seed: int) -> None:
    """No cause is named; the stage, its levels before and after, and when it changed are."""
    service = Service(seed)
    (only,) = named(code_gets_slower(service))
    assert (only.cause, only.stage) == (CauseName.UNKNOWN, "forward")
    change = next(text for text in only.evidence if "at equal inputs forward went from" in text)
    at_s = 0.9 * service.at_s[-1]
    minutes = [f"2026-03-02T10:{int(at_s // 60) + k:02}" for k in (-1, 0, 1)]
    assert any(minute in change for minute in minutes)
    assert any("--baseline" in text for text in only.missing)


def test_a_slow_replica_is_named_with_what_to_measure() -> None:
    """The cohort is the replica; the stage and its excess at equal shape are told."""
    first = named(replica_that_is_slow(Service(1)))[0]
    assert (first.cohort, first.stage) == ("replica=r3", "forward")
    assert any("at equal shape its mean is" in text for text in first.evidence)
    assert first.missing == ("measure utilisation, clock and temperature of replica=r3",)


def test_waiting_without_load_says_so() -> None:
    """Bursts of waiting at a steady rate of arrivals ask for what is waited for."""
    first = named(queueing(Service(1)))[0]
    assert first.stage == "queue"
    assert any("does not rise with the rate of arrivals" in text for text in first.against)
    assert any("requests in flight" in text for text in first.evidence)


def test_a_stage_may_be_declared_external() -> None:
    """A name that says nothing takes a declaration."""
    service = Service(1)
    dependency_outage(service)
    service.stages["scores"] = service.stages.pop("feature_lookup")
    evidence = service.evidence()
    found = findings(evidence)
    assert causes(evidence, found)[0].cause is CauseName.UNKNOWN
    first = causes(evidence, found, external=("scores",))[0]
    assert (first.cause, first.stage) == (CauseName.EXTERNAL_DEPENDENCY, "scores")
    assert any("by its declaration" in text for text in first.evidence)


def test_several_causes_may_hold() -> None:
    """A queue and a dependency that each make half of the tail are both named."""
    service = Service(2)
    down = service.between(0.2, 0.26)
    service.stages["feature_lookup"][down] += service.rng.exponential(150.0, int(down.sum()))
    service.stages["queue"] = np.where(
        service.between(0.6, 0.66), service.rng.exponential(150.0, service.n), 0.5
    )
    said = {one.cause for one in named(service.evidence())}
    assert said == {CauseName.CONTENTION, CauseName.EXTERNAL_DEPENDENCY}


def test_scores_are_ordered_and_reach_the_bar() -> None:
    """Every named cause is at or above `NAMED`, the highest first, none above 1."""
    for case in (dependency_outage, queueing, stragglers, long_while_lookup_is_down):
        scores = [one.score for one in named(case(Service(3)))]
        assert scores == sorted(scores, reverse=True)
        assert all(NAMED <= score <= 1 for score in scores)


def test_observations_change_what_is_established() -> None:
    """One that speaks for a cause raises its score, one against it lowers it, others do nothing."""
    evidence = dependency_outage(Service(1))
    found = findings(evidence)
    plain = causes(evidence, found)[0]
    cause, stage = plain.cause, plain.stage

    def first(speaks_for: bool, about: str = stage) -> Cause:  # noqa: FBT001
        seen = Observation(cause, about, speaks_for, 0.5, "an anomaly began at 10:04:00")
        return causes(evidence, found, observations=(seen,))[0]

    assert first(speaks_for=True).score > plain.score
    assert first(speaks_for=True).evidence[-1] == "an anomaly began at 10:04:00"
    assert first(speaks_for=False).score == pytest.approx(plain.score / 2)
    assert first(speaks_for=True, about="forward") == plain
    assert first(speaks_for=True, about="") == first(speaks_for=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_parts_of_a_gap_add_up(seed: int) -> None:
    """By covariate, by time and the rest: each stage's sum is its difference, and all the total."""
    made = picture(long_while_lookup_is_down(Service(seed)))
    for part in (made.whole, *made.stages):
        added = sum(part.by_covariate.values()) + part.level_ms + part.rest_ms
        assert added == pytest.approx(part.delta_ms, abs=1e-9)
    left = made.whole.delta_ms - sum(part.delta_ms for part in made.stages)
    assert abs(left) < 1  # unattributed: about a millisecond of noise


def test_a_fit_does_not_follow_noise() -> None:
    """Covariates that explain nothing explain less than a twentieth of the gap."""
    for seed in range(10):
        service = Service(seed, n=1_000)
        for name in ("a", "b", "c"):
            service.covariates[name] = service.rng.lognormal(0, 1, service.n)
        service.stages["forward"] = service.noisy(60.0, 0.8)
        made = picture(service.evidence())
        explained = sum(made.whole.by_covariate.values())
        assert abs(explained) < 0.05 * made.gap_ms


def test_inputs_that_change_only_with_time_are_half_established() -> None:
    """A sweep over batch sizes, one after the other, cannot be told from what else changed."""
    service = Service(1)
    batch = np.floor(1.0 + np.arange(service.n) * 20 / service.n)
    service.covariates = {"batch_size": batch}
    service.stages["forward"] = service.noisy(10 + 10 * batch)
    first = named(service.evidence())[0]
    assert first.cause is CauseName.INPUT_SHAPE
    assert first.score < 0.5
    assert any("changes only with time" in text for text in first.against)
    made = picture(service.evidence())
    assert made.split.tied
    assert split(made.requests).tied
    assert len(parts(made.requests, made.split)) == 1 + len(made.stages)


def test_starts_that_are_only_suspected_count_less() -> None:
    """Waves after silences make the tail: a cold start, with the event that would confirm it."""
    service = Service(1, n=3_000)
    wave = np.zeros(service.n, np.bool_)
    for k in range(6):
        at = 400 * (k + 1)
        service.at_s[at:] += 1_200
        wave[at : at + 20] = True
    service.stages["forward"][wave] *= 8
    first = named(service.evidence())[0]
    assert (first.cause, first.stage) == (CauseName.COLD_START, "forward")
    assert first.score < 0.6
    assert any("6 suspected starts" in text for text in first.evidence)
    assert any("--deploys" in text for text in first.missing)


def test_few_requests_and_no_tail_are_unknown() -> None:
    """What is missing is said; nothing is claimed."""
    few = named(gathered({"total_ms": [5.0, 9.0] * 30, "forward_ms": [4.0, 8.0] * 30}))
    assert (few[0].cause, few[0].score) == (CauseName.UNKNOWN, 0.0)
    assert "the slow band has" in few[0].missing[0]
    flat = named(gathered({"total_ms": [5.0] * 2_000, "forward_ms": [4.0] * 2_000}))
    assert flat[0].cause is CauseName.UNKNOWN


@pytest.mark.parametrize("values", [np.nan, 7.0])
def test_missing_and_constant_covariates_are_left_out(values: float) -> None:
    """They explain nothing and break nothing."""
    service = Service(1)
    service.covariates["batch_size"] = np.full(service.n, values)
    half = np.where(service.some(0.5), np.nan, service.rng.random(service.n))
    service.covariates["sometimes"] = half
    service.covariates["twin"] = 2 * service.covariates["sequence_length"]
    service.stages["forward"] = service.noisy(10 + 0.15 * service.covariates["twin"])
    evidence = service.evidence()
    assert picture(evidence).requests.features.covariates == ("sequence_length", "twin")
    assert named(evidence)[0].cause is CauseName.INPUT_SHAPE
