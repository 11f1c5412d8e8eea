"""Which cause is named first, on simulated services whose cause is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from findings import findings
from simulated import Service

from tailbudget.models.causes import causes
from tailbudget.models.evidence import Evidence
from tailbudget.schemas.proposals import Cause, CauseName

SEEDS = (1, 2, 3)
Case = Callable[[Service], Evidence]


def named(evidence: Evidence) -> tuple[Cause, ...]:
    """Return the causes of an evidence."""
    return causes(evidence, findings(evidence))


def long_inputs(service: Service) -> Evidence:
    """The forward pass grows with the length."""
    service.stages["forward"] = service.noisy(10 + 0.15 * service.covariates["sequence_length"])
    return service.evidence()


def quadratic_inputs(service: Service) -> Evidence:
    """The forward pass grows with the square of the length."""
    length = service.covariates["sequence_length"]
    service.stages["forward"] = service.noisy(10 + 2e-4 * length**2)
    return service.evidence()


def bulk_batches(service: Service) -> Evidence:
    """One route sends large batches, each row of which is looked up."""
    bulk = service.dimensions["route"] == "bulk"
    batch = np.where(bulk, service.rng.integers(150, 250, service.n), 1.0)
    service.covariates["batch_size"] = batch
    service.stages["feature_lookup"] = service.noisy(5 + 1.2 * batch)
    return service.evidence()


def fixed_batches(service: Service) -> Evidence:
    """The same with batches of one size."""
    bulk = service.dimensions["route"] == "bulk"
    service.covariates["batch_size"] = np.where(bulk, 200.0, service.rng.integers(1, 9, service.n))
    rows = service.covariates["batch_size"]
    service.stages["feature_lookup"] = service.noisy(5 + 1.2 * rows)
    return service.evidence()


def after_deploy(service: Service) -> Evidence:
    """A deploy makes everything slow for a while."""
    service.stages["forward"][service.between(0.4, 0.46)] *= 5
    return service.evidence((service.window(0.4, 0.46),))


def queueing(service: Service) -> Evidence:
    """Bursts queue."""
    burst = (service.at_s // 20).astype(int) % 10 == 0
    extra = np.where(burst, service.rng.exponential(150.0, service.n), 0.5)
    service.stages["queue"] = extra
    return service.evidence()


def waiting_for_admission(service: Service) -> Evidence:
    """Requests wait before they are admitted; the logged total does not say so."""
    logged = service.total()
    wait = np.where(service.some(0.1), service.rng.exponential(200.0, service.n), 0.2)
    service.stages["schedule_wait"] = wait
    total = logged + wait
    service.stages["logged"] = logged
    return service.logged(total)


def noisy_neighbour(service: Service) -> Evidence:
    """One replica is slower at the same inputs."""
    slow = (service.dimensions["replica"] == "r3") & service.some(0.4)
    service.stages["forward"][slow] += service.rng.exponential(120.0, int(slow.sum()))
    return service.evidence()


def dependency_outage(service: Service) -> Evidence:
    """The lookup is slow for all, twice for a while."""
    slow = service.between(0.2, 0.25) | service.between(0.7, 0.75)
    service.stages["feature_lookup"][slow] += service.rng.exponential(200.0, int(slow.sum()))
    return service.evidence()


def dependency_tail(service: Service) -> Evidence:
    """The lookup is slow now and then."""
    service.stages["feature_lookup"] = service.noisy(6.0, 1.6)
    return service.evidence()


def cache_misses(service: Service) -> Evidence:
    """The lookup of what is not cached takes long, and a flag says so."""
    miss = service.some(0.08)
    service.dimensions["cache_hit"] = np.where(miss, "false", "true")
    service.stages["feature_lookup"] = np.where(miss, service.noisy(250.0), service.noisy(4.0))
    return service.evidence()


def cache_miss_numbers(service: Service) -> Evidence:
    """The same, the flag being a number."""
    miss = service.some(0.08)
    service.covariates["prefix_hit"] = np.where(miss, 0.0, 1.0)
    service.stages["prefill"] = np.where(miss, service.noisy(250.0), service.noisy(4.0))
    return service.evidence()


def many_calls(service: Service) -> Evidence:
    """The lookup grows with the number of candidates."""
    candidates = np.round(service.rng.lognormal(3.0, 0.8, service.n))
    service.covariates["candidates"] = candidates
    service.stages["feature_lookup"] = service.noisy(4 + 1.5 * candidates)
    return service.evidence()


def stragglers(service: Service) -> Evidence:
    """Eight shards run in parallel; each is slow seldom, and the slowest counts."""
    own = service.total()
    shards = []
    for k in range(8):
        shard = service.noisy(20.0)
        shard[service.some(0.01)] += 250
        service.stages[f"shard_{k}"] = shard
        shards.append(shard)
    return service.logged(own + np.max(shards, axis=0))


CASES: dict[Case, CauseName] = {
    long_inputs: CauseName.INPUT_SHAPE,
    quadratic_inputs: CauseName.INPUT_SHAPE,
    bulk_batches: CauseName.INPUT_SHAPE,
    fixed_batches: CauseName.INPUT_SHAPE,
    after_deploy: CauseName.COLD_START,
    queueing: CauseName.CONTENTION,
    waiting_for_admission: CauseName.CONTENTION,
    noisy_neighbour: CauseName.CONTENTION,
    dependency_outage: CauseName.EXTERNAL_DEPENDENCY,
    dependency_tail: CauseName.EXTERNAL_DEPENDENCY,
    cache_misses: CauseName.CACHE_MISS,
    cache_miss_numbers: CauseName.CACHE_MISS,
    many_calls: CauseName.FANOUT,
    stragglers: CauseName.FANOUT,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_each_cause_ranks_first_where_it_is_the_cause(case: Case, seed: int) -> None:
    """The simulated cause is the first one named, with evidence."""
    first = named(case(Service(seed)))[0]
    assert first.cause is CASES[case], first
    assert first.evidence
