"""Who asks for what, and when: arrivals, lengths, batches, and how they shift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.faulty.scenarios import COHORTS, FaultScenario

Floats = NDArray[np.float64]
Span = tuple[float, float]

_STEP_S: Final = 0.1
_NOMINAL_S: Final = 1500.0
_SHARES: Final = (0.5, 0.35, 0.15)
_INPUT: Final = ((350.0, 0.9), (1800.0, 0.5), (2500.0, 1.0))
"""Median and spread of the logarithm of each cohort's input lengths."""
_OUTPUT: Final = (180.0, 250.0, 350.0)
_DAY_S: Final = 900.0
_LONGEST: Final = 32_768.0


@dataclass(slots=True)
class Workload:
    """All requests of a run, in order of arrival; `queueing` fills in the last three.

    Attributes:
        arrival_s: [N] since the start of the run.
        cohort: [N] index into `COHORTS`.
        shifted: [N] whether the request comes while the workload is shifted.
        tokens: [N] input tokens.
        output: [N] output tokens.
        documents: [N] candidates to retrieve, 0 retrieves nothing.
        batch: [N] batch size.
        in_flight: [N] requests in prefill when this one joins.
        waiting: [N] requests waiting before it.
        expected_wait: [N] `waiting` by the rate at which the queue drains, seconds.
    """

    arrival_s: Floats
    cohort: NDArray[np.int64]
    shifted: NDArray[np.bool_]
    tokens: Floats
    output: Floats
    documents: Floats
    batch: Floats
    in_flight: Floats
    waiting: Floats
    expected_wait: Floats

    def __len__(self) -> int:
        return len(self.arrival_s)


def workload(scenario: FaultScenario, random: np.random.Generator) -> Workload:
    """Draw the requests of a run."""
    spans = _shift_spans(scenario, random)
    grid = np.arange(0.0, scenario.duration_s, _STEP_S)
    rate = _rates(scenario, grid, spans, random)
    counts = random.poisson(rate * _STEP_S)
    arrival = np.sort(np.repeat(grid, counts) + random.uniform(0, _STEP_S, int(counts.sum())))
    shifted = within(arrival, spans)
    cohort = random.choice(len(COHORTS), len(arrival), p=_SHARES)
    load = np.interp(arrival, grid, rate) / scenario.rate
    none = np.zeros(len(arrival))
    return Workload(
        arrival_s=arrival,
        cohort=cohort,
        shifted=shifted,
        tokens=_tokens(scenario, cohort, shifted, random),
        output=_outputs(scenario, cohort, shifted, random),
        documents=_documents(scenario, cohort, shifted, random),
        batch=_batches(scenario, load, shifted, random),
        in_flight=none.copy(),
        waiting=none.copy(),
        expected_wait=none.copy(),
    )


def within(times_s: Floats, spans: tuple[Span, ...]) -> NDArray[np.bool_]:
    """Return which times lie in one of the spans [start, end)."""
    inside = np.zeros(len(times_s), np.bool_)
    for start, end in spans:
        inside |= (times_s >= start) & (times_s < end)
    return inside


def _shift_spans(scenario: FaultScenario, random: np.random.Generator) -> tuple[Span, ...]:
    """Return when the workload shifts: once before the faults, and once with the second one."""
    scale = scenario.duration_s / _NOMINAL_S
    start, end, again = np.array([400, 800, 1080]) + random.uniform(-20, 20, 3)
    return (start * scale, end * scale), (again * scale, scenario.duration_s)


def _rates(
    scenario: FaultScenario, grid: Floats, spans: tuple[Span, ...], random: np.random.Generator
) -> Floats:
    """Return arrivals a second: a compressed day, bursts, and a ramp where that is the shift."""
    phase = random.uniform(0, 2 * np.pi)
    rate: Floats = scenario.rate * (1 + 0.35 * np.sin(2 * np.pi * grid / _DAY_S + phase))
    at, burst = 0.0, False
    while at < scenario.duration_s:
        lasts = random.exponential(12.0 if burst else 40.0)
        rate[(grid >= at) & (grid < at + lasts)] *= 1.7 if burst else 1.0
        at, burst = at + lasts + _STEP_S, not burst
    if scenario.shift == "traffic_ramp":
        for start, end in spans:
            inside = (grid >= start) & (grid < end)
            rate[inside] *= 1 + 1.5 * np.clip((grid[inside] - start) / 60, 0, 1)
    return rate


def _tokens(
    scenario: FaultScenario,
    cohort: NDArray[np.int64],
    shifted: NDArray[np.bool_],
    random: np.random.Generator,
) -> Floats:
    median, spread = np.array(_INPUT)[cohort].T
    tokens = median * np.exp(spread * random.normal(size=len(cohort)))
    chat = shifted & (cohort == 0)
    if scenario.shift == "long_inputs_some":
        some = chat & (random.random(len(cohort)) < 0.3)
        tokens[some] = 3500 * np.exp(0.6 * random.normal(size=int(some.sum())))
    if scenario.shift == "long_inputs_all":
        tokens[chat] *= 10
    rounded: Floats = np.clip(np.round(tokens), 4, _LONGEST)
    return rounded


def _outputs(
    scenario: FaultScenario,
    cohort: NDArray[np.int64],
    shifted: NDArray[np.bool_],
    random: np.random.Generator,
) -> Floats:
    output = np.array(_OUTPUT)[cohort] * np.exp(0.7 * random.normal(size=len(cohort)))
    if scenario.shift == "long_outputs":
        output[shifted] *= 4
    rounded: Floats = np.clip(np.round(output), 1, 8192)
    return rounded


def _documents(
    scenario: FaultScenario,
    cohort: NDArray[np.int64],
    shifted: NDArray[np.bool_],
    random: np.random.Generator,
) -> Floats:
    rag, agent = 5 + random.poisson(3, len(cohort)), random.poisson(2, len(cohort))
    documents = np.select([cohort == 1, cohort == 2], [rag, agent], 0).astype(np.float64)
    if scenario.shift == "more_documents":
        more = shifted & (cohort != 0)
        documents[more] = documents[more] * 6 + 5
    return documents


def _batches(
    scenario: FaultScenario,
    load: Floats,
    shifted: NDArray[np.bool_],
    random: np.random.Generator,
) -> Floats:
    batch = 1.0 + random.poisson(3 * load)
    if scenario.shift == "big_batches":
        batch[shifted] = batch[shifted] * 4 + random.poisson(4, int(shifted.sum()))
    return np.clip(batch, 1, 128)
