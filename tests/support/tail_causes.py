"""Simulated services whose tail has one known cause, and pairs that look alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from simulated import Floats, Service

from tailbudget.models.evidence import Evidence
from tailbudget.schemas.proposals import CauseName

Case = Callable[[Service], Evidence]
Mask = NDArray[np.bool_]


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


def steps_of_inputs(service: Service) -> Evidence:
    """The forward pass grows in steps of 256 tokens, which no fit has."""
    blocks = np.ceil(service.covariates["sequence_length"] / 256)
    service.stages["forward"] = service.noisy(40 * blocks)
    return service.evidence()


def long_answers(service: Service) -> Evidence:
    """Each token takes longer in large batches and after long inputs."""
    batch = service.rng.integers(1, 17, service.n).astype(np.float64)
    tokens = np.round(service.rng.lognormal(4, 0.7, service.n))
    service.covariates |= {"output_tokens": tokens, "batch_size": batch}
    each = 2 + 0.3 * batch + 0.002 * service.covariates["sequence_length"]
    service.stages["decode"] = service.noisy(tokens * each)
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
    wait_ms = np.where(service.some(0.1), service.rng.exponential(200.0, service.n), 0.2)
    return service.logged(service.total(), wait_ms=wait_ms)


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


CASES: Final[dict[Case, CauseName]] = {
    long_inputs: CauseName.INPUT_SHAPE,
    quadratic_inputs: CauseName.INPUT_SHAPE,
    bulk_batches: CauseName.INPUT_SHAPE,
    fixed_batches: CauseName.INPUT_SHAPE,
    steps_of_inputs: CauseName.INPUT_SHAPE,
    long_answers: CauseName.INPUT_SHAPE,
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
"""A service and the cause that it has."""


def _longer_for_a_while(service: Service) -> Mask:
    while_long = service.between(0.3, 0.36) | service.between(0.6, 0.66)
    service.covariates["sequence_length"][while_long] *= 3
    return while_long


def long_while_lookup_is_down(service: Service) -> Evidence:
    """Inputs happen to be longer while the lookup is slow for all."""
    down = _longer_for_a_while(service)
    service.stages["feature_lookup"] = service.noisy(6.0)
    service.stages["feature_lookup"][down] += service.rng.exponential(200.0, int(down.sum()))
    return service.evidence()


def long_so_lookup_is_slow(service: Service) -> Evidence:
    """Inputs are longer for a while, and the lookup grows with them."""
    _longer_for_a_while(service)
    length = service.covariates["sequence_length"]
    service.stages["feature_lookup"] = service.noisy(2 + 0.15 * length)
    return service.evidence()


def workload_moves(service: Service) -> Evidence:
    """From the middle on inputs are longer."""
    service.covariates["sequence_length"][service.between(0.9, 1.0)] *= 2.5
    service.stages["forward"] = service.noisy(10 + 0.15 * service.covariates["sequence_length"])
    return service.evidence()


def code_gets_slower(service: Service) -> Evidence:
    """From then on the forward pass is slower at the same inputs."""
    service.stages["forward"][service.between(0.9, 1.0)] *= 2.5
    return service.evidence()


def _bulk_on_one_replica(service: Service) -> Mask:
    bulk = service.dimensions["route"] == "bulk"
    service.dimensions["replica"] = np.where(bulk, "r3", service.dimensions["replica"])
    service.covariates["batch_size"] = np.where(
        bulk, service.rng.integers(10, 60, service.n), service.rng.integers(1, 20, service.n)
    ).astype(float)
    on_r3: Mask = service.dimensions["replica"] == "r3"
    return on_r3


def replica_with_large_inputs(service: Service) -> Evidence:
    """One replica gets the large batches, and batches take their time."""
    _bulk_on_one_replica(service)
    service.stages["forward"] = service.noisy(20 + 6.0 * service.covariates["batch_size"])
    return service.evidence()


def replica_with_squared_inputs(service: Service) -> Evidence:
    """The same where time grows with the square of the batch."""
    _bulk_on_one_replica(service)
    service.stages["forward"] = service.noisy(20 + 0.1 * service.covariates["batch_size"] ** 2)
    return service.evidence()


def replica_that_is_slow(service: Service) -> Evidence:
    """One replica is slow whatever it gets, and gets the large batches."""
    on_r3 = _bulk_on_one_replica(service)
    service.stages["forward"][on_r3] += service.rng.exponential(200.0, int(on_r3.sum()))
    return service.evidence()


def long_inputs_after_deploy(service: Service) -> Evidence:
    """Inputs are longer in a cold window, and take as long as such inputs always do."""
    cold = service.between(0.4, 0.46)
    service.covariates["sequence_length"][cold] *= 3
    service.stages["forward"] = service.noisy(10 + 0.15 * service.covariates["sequence_length"])
    return service.evidence((service.window(0.4, 0.46),))


def slow_after_deploy(service: Service) -> Evidence:
    """Inputs are longer in a cold window, in which everything is slow."""
    cold = service.between(0.4, 0.46)
    service.covariates["sequence_length"][cold] *= 3
    service.stages["forward"][cold] *= 5
    return service.evidence((service.window(0.4, 0.46),))


def misses_are_slow(service: Service) -> Evidence:
    """Long inputs are seldom cached; a miss takes long, a long input does not."""
    length = service.covariates["sequence_length"]
    miss = service.rng.random(service.n) < np.where(length > 800, 0.3, 0.03)
    service.dimensions["cache_hit"] = np.where(miss, "false", "true")
    service.stages["forward"] = np.where(miss, service.noisy(300.0), service.noisy(60.0))
    return service.evidence()


def long_inputs_are_not_cached(service: Service) -> Evidence:
    """Long inputs are seldom cached; a long input takes long, a miss does not."""
    length = service.covariates["sequence_length"]
    miss = service.rng.random(service.n) < np.where(length > 800, 0.6, 0.03)
    service.dimensions["cache_hit"] = np.where(miss, "false", "true")
    service.stages["forward"] = service.noisy(10 + 0.3 * length)
    return service.evidence()


def _rate(service: Service) -> Floats:
    """Make traffic come in waves; return how high each request's wave is, 0 to 1."""
    wave = 0.5 + 0.5 * np.sin(np.arange(service.n) / service.n * 12 * np.pi)
    service.at_s = np.cumsum(service.rng.exponential(1.0, service.n) / (1 + 7 * wave))
    return wave


def slow_under_load(service: Service) -> Evidence:
    """The forward pass is slower the more requests come."""
    wave = _rate(service)
    service.stages["forward"] = service.noisy(40 + 200 * wave**4)
    return service.evidence()


def slow_beside_load(service: Service) -> Evidence:
    """Traffic comes in the same waves; the lookup is down twice, at its own times."""
    _rate(service)
    return lookup_down(service)


def lookup_down(service: Service) -> Evidence:
    """The lookup is slow for all for a while: more requests are in flight, none for load."""
    down = service.between(0.21, 0.25) | service.between(0.72, 0.76)
    service.stages["feature_lookup"][down] += service.rng.exponential(200.0, int(down.sum()))
    return service.evidence()


PAIRS: Final[dict[Case, CauseName]] = {
    long_while_lookup_is_down: CauseName.EXTERNAL_DEPENDENCY,
    long_so_lookup_is_slow: CauseName.INPUT_SHAPE,
    workload_moves: CauseName.INPUT_SHAPE,
    code_gets_slower: CauseName.UNKNOWN,
    replica_with_large_inputs: CauseName.INPUT_SHAPE,
    replica_with_squared_inputs: CauseName.INPUT_SHAPE,
    replica_that_is_slow: CauseName.CONTENTION,
    long_inputs_after_deploy: CauseName.INPUT_SHAPE,
    slow_after_deploy: CauseName.COLD_START,
    misses_are_slow: CauseName.CACHE_MISS,
    long_inputs_are_not_cached: CauseName.INPUT_SHAPE,
    slow_under_load: CauseName.CONTENTION,
    slow_beside_load: CauseName.EXTERNAL_DEPENDENCY,
}
"""Services that look like one with another cause."""


def two_modes(service: Service) -> Evidence:
    """A lookup is slow now and then, and no flag says why."""
    slow = service.some(0.08)
    service.stages["feature_lookup"] = np.where(slow, service.noisy(250.0), service.noisy(4.0))
    return service.evidence()


def lookup_of_one_region(service: Service) -> Evidence:
    """The lookup is slow for one region: not for all at once."""
    service.dimensions["region"] = service.rng.choice(
        ["eu", "us", "ap"], service.n, p=[0.5, 0.4, 0.1]
    )
    there = service.dimensions["region"] == "ap"
    service.stages["feature_lookup"][there] += service.rng.exponential(200.0, int(there.sum()))
    return service.evidence()


def all_shards_slow(service: Service) -> Evidence:
    """Parallel shards are slow all at once."""
    own = service.total()
    down = np.where(service.some(0.08), 250.0, 0.0)
    shards = [service.noisy(20.0) + down for _ in range(8)]
    service.stages |= {f"shard_{k}": shard for k, shard in enumerate(shards)}
    return service.logged(own + np.max(shards, axis=0))


def one_shard_slow(service: Service) -> Evidence:
    """Of parallel shards one is slow."""
    own = service.total()
    shards = [service.noisy(20.0) for _ in range(8)]
    shards[3] = shards[3] + np.where(service.some(0.08), 250.0, 0.0)
    service.stages |= {f"shard_{k}": shard for k, shard in enumerate(shards)}
    return service.logged(own + np.max(shards, axis=0))
