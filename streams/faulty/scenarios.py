"""The permanent names of scenarios: what goes wrong, what changes meanwhile, how noisy it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

Fault = Literal[
    "none",
    "thermal",
    "driver_constant",
    "noisy_neighbour",
    "dependency",
    "cache_storm",
    "leak",
    "deploy_regression",
    "quadratic_kernel",
    "tail_only",
]
Shift = Literal[
    "none",
    "long_inputs_some",
    "long_inputs_all",
    "big_batches",
    "traffic_ramp",
    "more_documents",
    "long_outputs",
]
Family = Literal["terms", "misfit"]
Noise = Literal["easy", "medium", "hard"]

FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)
SHIFTS: Final[tuple[Shift, ...]] = get_args(Shift)

STAGES: Final = ("tokenize", "lookup", "retrieve", "queue", "prefill", "decode")
COHORTS: Final = ("chat", "rag", "agent")
COVARIATES: Final = (
    *("input_tokens", "output_tokens", "candidates"),
    *("batch_size", "in_flight", "waiting", "expected_wait"),
)

AFFECTED: Final[dict[Fault, tuple[str, ...]]] = {
    "none": (),
    "thermal": ("prefill", "decode"),
    "driver_constant": ("prefill",),
    "noisy_neighbour": ("tokenize", "prefill"),
    "dependency": ("retrieve",),
    "cache_storm": ("lookup",),
    "leak": ("decode",),
    "deploy_regression": ("prefill",),
    "quadratic_kernel": ("prefill",),
    "tail_only": ("retrieve",),
}
"""The stages that a fault slows by itself; a queue before one of them fills up besides."""


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """How much latencies vary that nothing explains.

    Attributes:
        spread: factor of each stage's standard deviation of the logarithm.
        drift: standard deviation of the logarithm of a slow jitter that all requests share.
        tail_share: share of the values with a Pareto tail.
    """

    spread: float
    drift: float
    tail_share: float


NOISE: Final[dict[Noise, NoiseLevel]] = {
    "easy": NoiseLevel(0.7, 0.01, 0.002),
    "medium": NoiseLevel(1.0, 0.02, 0.005),
    "hard": NoiseLevel(1.5, 0.03, 0.02),
}


@dataclass(frozen=True, slots=True)
class FaultScenario:
    """One run: all of it follows from these values.

    Attributes:
        fault: what goes wrong.
        effect: how many times slower the affected stages become (1.3 is +30 %).
        shift: how the workload changes, which is no fault.
        noise: how noisy it is.
        family: "terms" are stage models that a regression on work and load can express;
            "misfit" are powers, saturation and steps, which it can't.
        rate: requests a second on average.
        duration_s: of the run; the times of faults and shifts scale with it.
        seed: of all randomness.
    """

    fault: Fault = "none"
    effect: float = 1.3
    shift: Shift = "none"
    noise: Noise = "medium"
    family: Family = "terms"
    rate: float = 40.0
    duration_s: float = 1500.0
    seed: int = 1

    @property
    def name(self) -> str:
        """Return the permanent name, such as "thermal x1.3, big_batches, medium, terms, 40/s"."""
        fault = self.fault if self.fault == "none" else f"{self.fault} x{self.effect:g}"
        return f"{fault}, {self.shift}, {self.noise}, {self.family}, {self.rate:g}/s"


def scenario_of(name: str) -> FaultScenario:
    """Return the scenario of a name such as "thermal x1.5, big_batches", or of a whole name.

    What is not named is as in `FaultScenario`; the order does not matter.

    Raises:
        ValueError: a word is none of the names.
    """
    found = FaultScenario()
    for word in re.split(r"[,\s]+", name.strip()):
        found = _with(found, word)
    return found


def _with(found: FaultScenario, word: str) -> FaultScenario:
    named = {"fault": FAULTS, "shift": SHIFTS, "noise": tuple(NOISE), "family": get_args(Family)}
    numbers = {"effect": r"x(\d+(?:\.\d+)?)", "rate": r"(\d+(?:\.\d+)?)/s"}
    values: dict[str, Any] = {key: word for key, names in named.items() if word in names}
    for key, form in numbers.items():
        if match := re.fullmatch(form, word):
            values[key] = float(match[1])
    if not values:
        raise ValueError(f"{word!r} is no fault, shift, noise or family")
    return found if word == "none" else replace(found, **values)
