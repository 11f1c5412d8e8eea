"""Which scenarios the anomaly benchmark runs: a fixed plan, the same for every detector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.streams.faulty.scenarios import FAULTS, SHIFTS, FaultScenario, Noise

EFFECTS: Final = (1.3, 1.1, 1.6, 1.2, 3.0, 1.05)
FIXING_SEEDS: Final = tuple(range(2001, 2006))
"""Parameters are fixed on these, and never reported."""
REPORTED_SEEDS: Final = tuple(range(5001, 5011))
_SHIFT_ONLY: Final = ("long_inputs_some", "long_inputs_all", "big_batches", "traffic_ramp")
_RATES: Final = ((1.0, 6000.0), (1000.0, 900.0))
"""(requests/s, duration): slow traffic needs longer runs, fast traffic is costly to make."""


def plan(seeds: tuple[int, ...]) -> list[FaultScenario]:
    """Return eight runs a seed: six faults at medium noise, then two other conditions.

    Faults, effects and shifts go round, so that each meets each; a third of the runs has stage
    models that the regression can't express.
    """
    return [run for i, seed in enumerate(seeds) for run in (*_medium(i, seed), *_others(i, seed))]


def _medium(i: int, seed: int) -> Iterator[FaultScenario]:
    for j, fault in enumerate(FAULTS):
        if (i + 2 * j) % 5 >= 3:
            continue
        yield FaultScenario(
            fault=fault,
            effect=1.0 if fault == "none" else EFFECTS[(i + j) % len(EFFECTS)],
            shift=_SHIFT_ONLY[i % 4] if fault == "none" else SHIFTS[(i + 2 * j) % len(SHIFTS)],
            family="misfit" if (i + j) % 3 == 2 else "terms",
            seed=seed,
        )


def _others(i: int, seed: int) -> Iterator[FaultScenario]:
    """Yield a run at another noise level and one at another rate; ten seeds meet every fault."""
    fault = FAULTS[i % len(FAULTS)]
    rate, duration_s = _RATES[i % 2]
    conditions: tuple[tuple[Noise, float, float], ...] = (
        ("easy" if i % 2 else "hard", 40.0, 1500.0),
        ("medium", rate, duration_s),
    )
    for k, (noise, a_second, length_s) in enumerate(conditions):
        yield FaultScenario(
            fault=fault,
            effect=1.0 if fault == "none" else (1.3, 1.6, 1.2)[(i + k) % 3],
            shift=SHIFTS[(i + k) % len(SHIFTS)],
            noise=noise,
            rate=a_second,
            duration_s=length_s,
            seed=seed + 100 * (k + 1),
        )
