"""Two sides of a comparison whose truth is known: a service as a function of its workload."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from gathered import gathered

from tailbudget.models.evidence import Evidence
from tailbudget.schemas.sections import ColdWindow

RATE_S = 0.2


@dataclass(frozen=True)
class World:
    """What comes, and how it is served.

    Attributes:
        bulk: share of the requests on the slow route.
        length: factor on the length of the input.
        slow: factor on the time that a unit of length takes.
        failed: share that fails.
        variant: version of the model.
        cold: share of the span, at its beginning, in which all take 400 ms more.
    """

    bulk: float = 0.0
    length: float = 1.0
    slow: float = 1.0
    failed: float = 0.0
    variant: str = "v1"
    cold: float = 0.0


def columns(world: World, n: int, seed: int) -> dict[str, Any]:
    """Return n requests: prefill is linear in the length, the bulk route looks up 250 ms."""
    rng = np.random.default_rng(seed)
    bulk = rng.random(n) < world.bulk
    length = rng.lognormal(6, 0.6, n) * world.length
    prefill = 0.05 * length * rng.lognormal(0, 0.1, n) * world.slow
    lookup = np.where(bulk, rng.normal(250, 20, n), rng.normal(6, 1, n)).clip(0.1)
    cold = np.where(np.arange(n) < world.cold * n, 400.0, 0.0)
    return {
        "total_ms": prefill + lookup + cold + rng.exponential(5, n),
        "prefill_ms": prefill,
        "lookup_ms": lookup,
        "sequence_length": length,
        "route": np.where(bulk, "bulk", "chat"),
        "model_variant": [world.variant] * n,
        "status": np.where(rng.random(n) < world.failed, "error", "ok"),
    }


def evidence(
    world: World,
    n: int,
    seed: int,
    cold_windows: list[ColdWindow] | None = None,
    every_s: float = RATE_S,
) -> Evidence:
    """Return the evidence of n requests of a world, one every so many seconds."""
    return gathered(
        {name: list(values) for name, values in columns(world, n, seed).items()},
        covariates=("sequence_length",),
        cohort_dims=("route", "model_variant"),
        cold_windows=cold_windows,
        every_s=every_s,
    )


@cache
def true_p99_ms(world: World) -> float:
    """Return the p99 of very many requests, failures slower than all."""
    made = columns(world, 400_000, 4_711)
    total = np.where(made["status"] == "ok", made["total_ms"], np.inf)
    return float(np.quantile(total, 0.99, method="inverted_cdf"))
