"""Ticks of a small service with two stages and two cohorts, and guards that watched it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from tailbudget.models.anomaly.guard import Guard
from tailbudget.schemas.anomalies import Anomaly, StageCohort, TickRows

KEYS = tuple(StageCohort(s, c) for s in ("prefill", "lookup") for c in ("chat", "search"))
NAMES = ("batch_size", "input_tokens")
SECOND_NS = 1_000_000_000


@dataclass
class Service:
    """Makes the rows of one second at a time.

    Attributes:
        rows: requests a second, each with both stages.
        tokens: median input length.
        slow: factor of the time of prefill.
        seed: of its randomness.
    """

    rows: int = 20
    tokens: float = 500.0
    slow: float = 1.0
    seed: int = 1
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def tick(self) -> TickRows:
        """Return the rows of a second."""
        n, random = self.rows, self.random
        cohort = (random.random(n) < 0.3).astype(np.int64)
        tokens = np.round(self.tokens * np.exp(0.6 * random.normal(size=n)))
        batch = 1.0 + random.poisson(3, n)
        prefill = (5 + 0.03 * tokens) * (1 + 0.05 * batch) * np.exp(0.1 * random.normal(size=n))
        lookup = 2 * np.exp(0.2 * random.normal(size=n))
        return TickRows(
            KEYS,
            np.concatenate([cohort, 2 + cohort]),
            np.concatenate([prefill * self.slow, lookup]),
            NAMES,
            np.tile(np.column_stack([batch, tokens]), (2, 1)),
        )


def watch(
    guard: Guard,
    service: Service,
    seconds: Iterable[int],
    change: Callable[[TickRows], TickRows] = lambda rows: rows,
) -> list[Anomaly]:
    """Let a guard watch a service for some seconds; return what it said."""
    said = []
    for second in seconds:
        said += guard.step(second * SECOND_NS, change(service.tick()))
    return said


def learnt(service: Service, seconds: int = 300) -> Guard:
    """Return a guard that has watched a service from second 1 up to (not with) `seconds`."""
    guard = Guard()
    watch(guard, service, range(1, seconds))
    return guard
