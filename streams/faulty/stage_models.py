"""How long each stage takes without noise, in milliseconds: two families of models."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.faulty.scenarios import Family
from tailbudget.streams.faulty.workload import Workload

Floats = NDArray[np.float64]

SPREAD: Final = {
    "tokenize": 0.12,
    "lookup": 0.25,
    "retrieve": 0.20,
    "queue": 0.35,
    "prefill": 0.08,
    "decode": 0.06,
}
"""Standard deviation of the logarithm of each stage's noise at medium noise."""

MISS_SHARE: Final = 0.05
HIT_MS: Final = 1.2
MISS_MS: Final = 14.0


def mean_ms(family: Family, stage: str, work: Workload, missed: NDArray[np.bool_]) -> Floats:
    """Return [N] the time of a stage other than "queue", given who missed the cache."""
    if stage == "lookup":
        slope = work.documents if family == "terms" else 8 * work.documents / (work.documents + 8)
        found: Floats = np.where(missed, MISS_MS, HIT_MS) + 0.002 * slope
        return found
    return (_terms if family == "terms" else _misfit)(stage, work)


def quadratic_ms(work: Workload) -> Floats:
    """Return [N] the part of prefill that is quadratic in the input's length, at no load."""
    part: Floats = 6e-6 * work.tokens**2
    return part


def _terms(stage: str, work: Workload) -> Floats:
    """Return sums of products of work and load."""
    crowd = 1 + 0.006 * work.in_flight
    n, batch = work.tokens, work.batch
    if stage == "tokenize":
        return 0.15 + 0.0009 * n
    if stage == "retrieve":
        return 6 + 1.1 * work.documents
    if stage == "prefill":
        return (6 + 0.03 * n + quadratic_ms(work)) * (1 + 0.03 * (batch - 1)) * crowd
    return work.output * (9 + 0.35 * batch + 0.0004 * n) * crowd


def _misfit(stage: str, work: Workload) -> Floats:
    """Return powers, saturation and steps."""
    n, batch = work.tokens, work.batch
    crowd = 1 + 0.3 * work.in_flight / (work.in_flight + 25)
    if stage == "tokenize":
        power: Floats = 0.12 + 0.004 * n**0.8
        return power
    if stage == "retrieve":
        sublinear: Floats = 4 + 3.2 * work.documents**0.7
        return sublinear
    if stage == "prefill":
        padded = 256 * np.ceil(n / 256)
        stepped: Floats = (6 + 0.012 * padded**1.15) * (1 + 0.12 * np.log2(batch)) * crowd
        return stepped
    per_token: Floats = 8 + 1.6 * np.sqrt(batch) + 0.008 * n**0.75
    return work.output * per_token * crowd
