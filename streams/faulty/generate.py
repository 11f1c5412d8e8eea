"""Make the rows of a run: one for every stage of every request, with the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.faulty import faults
from tailbudget.streams.faulty.queueing import enqueue
from tailbudget.streams.faulty.scenarios import COHORTS, NOISE, STAGES, FaultScenario, NoiseLevel
from tailbudget.streams.faulty.stage_models import SPREAD, mean_ms
from tailbudget.streams.faulty.truth import Truth, truth
from tailbudget.streams.faulty.workload import Floats, Workload, workload

_DRIFT_S: Final = 20.0
_COLD: Final = {"prefill": 1.5, "decode": 1.5, "lookup": 3.0}
_QUEUE_MS: Final = 0.3
_TYPICAL_IN_FLIGHT: Final = 3.0


@dataclass(frozen=True, slots=True)
class FaultyTraffic:
    """Rows in order of completion: one stage of one request each.

    Attributes:
        scenario: what it was made from.
        done_s: [M] completion, since the start of the run.
        key: [M] stage index times the number of cohorts, plus cohort index.
        request: [M] which request.
        ms: [M] the stage's time.
        sound_ms: [M] what it would have been without the fault.
        covariate: [M, C] columns of `COVARIATES`.
        deploys_s: seconds of deploys.
        truth: what a detector should say.
    """

    scenario: FaultScenario
    done_s: Floats
    key: NDArray[np.int64]
    request: NDArray[np.int64]
    ms: Floats
    sound_ms: Floats
    covariate: Floats
    deploys_s: tuple[float, ...]
    truth: Truth


@dataclass(slots=True)
class _Run:
    scenario: FaultScenario
    random: np.random.Generator
    work: Workload
    acts: faults.Episodes
    draws: faults.Draws
    clock_s: Floats


@dataclass(frozen=True, slots=True)
class _Part:
    key: NDArray[np.int64]
    request: NDArray[np.int64]
    done_s: Floats
    ms: Floats
    sound_ms: Floats


def generate(scenario: FaultScenario) -> FaultyTraffic:
    """Make a run; the same scenario gives the same rows."""
    random = np.random.default_rng(scenario.seed)
    work = workload(scenario, random)
    acts = faults.episodes(scenario, random)
    draws = faults.Draws(random.random(len(work)), random.random(len(work)))
    run = _Run(scenario, random, work, acts, draws, work.arrival_s.copy())
    parts = [_stage(run, index, name) for index, name in enumerate(STAGES)]
    return _joined(run, parts)


def _stage(run: _Run, index: int, name: str) -> _Part:
    noise = _noise(run, name)
    if name == "queue":
        slow = faults.slow_service(run.scenario, run.acts, run.clock_s)
        wait_s = enqueue(run.work, run.clock_s, _occupied_s(run) * slow, run.scenario.rate)
        sound = slowed = wait_s * 1000 + _QUEUE_MS
        drift = _drift(run, run.clock_s)
    else:
        nominal = mean_ms(run.scenario.family, name, run.work, np.zeros(len(run.work), np.bool_))
        at_s = run.clock_s + nominal / 1000
        acting = faults.Acting(run.scenario, run.acts, run.work, run.draws)
        sound, slowed = faults.faulty_ms(acting, name, at_s)
        cold = faults.warm_up(run.acts.deploys, at_s)
        drift = _drift(run, at_s) * (1 + _COLD.get(name, 0.5) * cold)
    ms = slowed * noise * drift
    done_s = run.clock_s + ms / 1000
    took_part = np.flatnonzero(run.work.documents > 0) if name == "retrieve" else None
    chosen = np.arange(len(run.work)) if took_part is None else took_part
    run.clock_s = done_s if took_part is None else _only(run.clock_s, done_s, chosen)
    key = index * len(COHORTS) + run.work.cohort[chosen]
    return _Part(key, chosen, done_s[chosen], ms[chosen], (sound * noise * drift)[chosen])


def _only(clock_s: Floats, done_s: Floats, chosen: NDArray[np.int64]) -> Floats:
    moved = clock_s.copy()
    moved[chosen] = done_s[chosen]
    return moved


def _occupied_s(run: _Run) -> Floats:
    """Return how long prefill takes at a typical load: what it will see is not known yet."""
    typical = replace(run.work, in_flight=np.full(len(run.work), _TYPICAL_IN_FLIGHT))
    ms = mean_ms(run.scenario.family, "prefill", typical, np.zeros(len(typical), np.bool_))
    return ms / 1000


def _noise(run: _Run, name: str) -> Floats:
    """Return [N] lognormal factors, some with a Pareto tail."""
    level: NoiseLevel = NOISE[run.scenario.noise]
    n = len(run.work)
    noise: Floats = np.exp(SPREAD[name] * level.spread * run.random.normal(size=n))
    tail = run.random.random(n) < level.tail_share
    return np.where(tail, noise * (1.5 + 1.5 * run.random.pareto(2.5, n)), noise)


def _drift(run: _Run, at_s: Floats) -> Floats:
    """Return [N] a slow jitter that all requests of a stage share: autoregressive, by seconds."""
    seconds = int(run.scenario.duration_s) + 200
    keep = np.exp(-1 / _DRIFT_S)
    shocks = run.random.normal(size=seconds) * np.sqrt(1 - keep**2)
    level, path = 0.0, np.empty(seconds)
    for i, shock in enumerate(shocks.tolist()):
        level = keep * level + shock
        path[i] = level
    drift: Floats = np.exp(
        NOISE[run.scenario.noise].drift * np.interp(at_s, np.arange(seconds), path)
    )
    return drift


def _joined(run: _Run, parts: list[_Part]) -> FaultyTraffic:
    done_s = np.concatenate([part.done_s for part in parts])
    order = np.argsort(done_s, kind="stable")
    order = order[done_s[order] < run.scenario.duration_s]
    key = np.concatenate([part.key for part in parts])[order]
    request = np.concatenate([part.request for part in parts])[order]
    ms = np.concatenate([part.ms for part in parts])[order]
    sound_ms = np.concatenate([part.sound_ms for part in parts])[order]
    work = run.work
    covariates = (work.tokens, work.output, work.documents, work.batch)
    seen = (work.in_flight, work.waiting, work.expected_wait)
    return FaultyTraffic(
        scenario=run.scenario,
        done_s=done_s[order],
        key=key,
        request=request,
        ms=ms,
        sound_ms=sound_ms,
        covariate=np.stack([*covariates, *seen], axis=1)[request],
        deploys_s=run.acts.deploys,
        truth=truth(run.scenario, run.acts, key, done_s[order], np.log(ms / sound_ms)),
    )
