"""What goes wrong, when, and what it does to a stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.faulty.scenarios import AFFECTED, FaultScenario
from tailbudget.streams.faulty.stage_models import (
    HIT_MS,
    MISS_MS,
    MISS_SHARE,
    mean_ms,
    quadratic_ms,
)
from tailbudget.streams.faulty.workload import Floats, Span, Workload, within

_NOMINAL_S: Final = 1500.0
_TAIL_SHARE: Final = 0.10


@dataclass(frozen=True, slots=True)
class Episodes:
    """When a fault acts.

    Attributes:
        spans: [start, end) seconds; the two times that it acts, or many short ones.
        deploys: seconds of the deploys that belong to it.
    """

    spans: tuple[Span, ...]
    deploys: tuple[float, ...] = ()


def episodes(scenario: FaultScenario, random: np.random.Generator) -> Episodes:
    """Draw when the fault of a scenario acts."""
    scale = scenario.duration_s / _NOMINAL_S
    if scenario.fault == "none":
        return Episodes(())
    if scenario.fault in ("leak", "deploy_regression"):
        start, end = (np.array([880, 1300]) + random.uniform(-15, 15, 2)) * scale
        span = (float(start), float(end))
        return Episodes((span,), span if scenario.fault == "deploy_regression" else ())
    starts = (np.array([900, 1180]) + random.uniform(-20, 20, 2)) * scale
    ends = starts + (120 + random.uniform(-20, 20, 2)) * scale
    spans = tuple(zip(starts.tolist(), ends.tolist(), strict=True))
    if scenario.fault != "noisy_neighbour":
        return Episodes(spans)
    return Episodes(tuple(part for span in spans for part in _bursts(span, random)))


def _bursts(span: Span, random: np.random.Generator) -> list[Span]:
    at, end = span
    parts = []
    while at < end:
        lasts = random.uniform(4, 10)
        parts.append((at, min(at + lasts, end)))
        at += lasts + random.uniform(4, 12)
    return parts


@dataclass(frozen=True, slots=True)
class Draws:
    """Random numbers that both versions of a record share.

    Attributes:
        miss: [N] uniform; below the share of misses is one.
        tail: [N] uniform; below the share of a tail-only fault is slow.
    """

    miss: Floats
    tail: Floats


@dataclass(frozen=True, slots=True)
class Acting:
    """A fault at work on one run.

    Attributes:
        scenario: what it is.
        episodes: when it acts.
        work: the requests.
        draws: the random numbers of each.
    """

    scenario: FaultScenario
    episodes: Episodes
    work: Workload
    draws: Draws


def faulty_ms(run: Acting, stage: str, at_s: Floats) -> tuple[Floats, Floats]:
    """Return [N] a stage's time without and with the fault, before noise."""
    sound = mean_ms(run.scenario.family, stage, run.work, run.draws.miss < MISS_SHARE)
    if stage not in AFFECTED[run.scenario.fault]:
        return sound, sound
    acting = within(at_s, run.episodes.spans)
    return sound, np.where(acting, _slowed(run, sound, at_s), sound)


def _slowed(run: Acting, sound: Floats, at_s: Floats) -> Floats:
    """Return [N] what a stage takes while the fault acts."""
    work, fault, extra = run.work, run.scenario.fault, run.scenario.effect - 1
    if fault == "driver_constant":
        usual = [np.median(sound[(work.cohort == c) & ~work.shifted]) for c in range(3)]
        return sound + extra * np.array(usual)[work.cohort]
    if fault == "cache_storm":
        mean = HIT_MS + MISS_SHARE * (MISS_MS - HIT_MS)
        share = MISS_SHARE + extra * mean / (MISS_MS - HIT_MS)
        return mean_ms(run.scenario.family, "lookup", work, run.draws.miss < share)
    if fault == "leak":
        start, end = run.episodes.spans[0]
        return sound * (1 + extra * np.clip((at_s - start) / (end - start), 0, 1))
    if fault == "quadratic_kernel":
        return sound + extra * _quadratic_share(work, sound)
    if fault == "tail_only":
        return np.where(run.draws.tail < _TAIL_SHARE, sound * (1 + 4 * extra), sound)
    return sound * run.scenario.effect


def _quadratic_share(work: Workload, sound: Floats) -> Floats:
    """Return what to add so that the mean of unshifted agent requests is doubled."""
    part = quadratic_ms(work) * (1 + 0.03 * (work.batch - 1))
    usual = (work.cohort == 2) & ~work.shifted
    extra: Floats = part * (sound[usual].mean() / part[usual].mean())
    return extra


def slow_service(scenario: FaultScenario, acts: Episodes, at_s: Floats) -> Floats:
    """Return [N] how many times longer prefill occupies its slot."""
    if "prefill" not in AFFECTED[scenario.fault]:
        return np.ones(len(at_s))
    return np.where(within(at_s, acts.spans), scenario.effect, 1.0)


def warm_up(deploys: tuple[float, ...], at_s: Floats) -> NDArray[np.float64]:
    """Return [N] how cold replicas are: 1 at a deploy, fading with a time constant of 25 s."""
    cold = np.zeros(len(at_s))
    for deploy in deploys:
        age = at_s - deploy
        fresh = (age >= 0) & (age < 400)
        cold = np.where(fresh, np.maximum(cold, np.exp(-np.maximum(age, 0) / 25)), cold)
    return cold
