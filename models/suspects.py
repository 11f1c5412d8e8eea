"""What looks like a cold start that no event announced.

An opening (see `openings`) is suspected when all of these hold:
- its first requests are slow beyond chance: more of them than of all others lie above the p99, or
  the slowest is slower than all others by more than a heavy tail would give;
- the slowest costs at least as much again as a request usually does;
- other replicas were not as slow at the same time;
- latency is back to usual afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.binomial import upper_tail
from tailbudget.models.evidence import Evidence, touched
from tailbudget.models.instants import rfc3339
from tailbudget.models.openings import Opening, openings
from tailbudget.models.sample import NO_LIMIT
from tailbudget.models.slots import Slots, slots_of
from tailbudget.models.snapshot import CHANCE
from tailbudget.schemas.cohorts import instance_of
from tailbudget.schemas.sections import SuspectedStart
from tailbudget.schemas.summary import TOTAL, Sample, Summary

MOST: Final = 20
"""Suspects of one report; of more the slowest are told."""

_BEYOND_P99: Final = 0.01
_COSTS: Final = 2.0  # times the usual latency: less is not worth a word
_FOR_P99: Final = 100  # successes from which the p99 is not the maximum
_FOR_P50: Final = 20


@dataclass(frozen=True, slots=True)
class _Usual:
    """What requests outside of an opening take.

    Attributes:
        n: how many there are.
        p50_ms: their median.
        p99_ms: their p99, or their maximum when they are too few for it.
        max_ms: the slowest.
    """

    n: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class _Rest:
    """The service's slots, and the starts of those that tell nothing about what is usual."""

    whole: Slots
    left_out: frozenset[int]

    def of(self, slots: Slots, first: int, opening: Opening) -> NDArray[np.intp]:
        """Return which slots from an index on tell what is usual beside an opening."""
        out = [*self.left_out, int(opening.slots.start_ns[opening.at])]
        at = np.arange(first, len(slots))
        return at[~np.isin(slots.start_ns[at], np.array(out, np.int64))]


@dataclass(frozen=True, slots=True)
class _Wave:
    """The slow requests of an opening: slots [at, end), `n` slower than usual."""

    opening: Opening
    usual: _Usual
    end: int
    n: int

    @property
    def start_ns(self) -> int:
        return int(self.opening.slots.start_ns[self.opening.at])

    @property
    def last_ns(self) -> int:
        return int(self.opening.slots.start_ns[self.end - 1])

    def slots_ns(self) -> list[int]:
        """Return the starts of its slots."""
        starts: list[int] = self.opening.slots.start_ns[self.opening.at : self.end].tolist()
        return starts

    @property
    def worst_ms(self) -> float:
        return float(self.opening.slots.max_ms[self.opening.at : self.end].max())


def suspects(evidence: Evidence) -> tuple[SuspectedStart, ...]:
    """Return what looks like an unannounced cold start, in order of time, each once."""
    whole = slots_of(evidence.timeline)
    looked_at = list(openings(evidence, whole))
    # Waves are no part of what is usual: neither the first slot of any, nor all slots of those
    # that are found at first.
    starts = {int(one.slots.start_ns[one.at]) for one in looked_at if not one.instance}
    first = _waves(looked_at, _Rest(whole, frozenset(starts)), evidence)
    starts |= {start for wave in first for start in wave.slots_ns()}
    waves = _waves(looked_at, _Rest(whole, frozenset(starts)), evidence)
    waves = sorted(waves, key=lambda wave: -wave.worst_ms)[:MOST]
    rows = [_suspect(wave, evidence) for wave in waves]
    return tuple(sorted(rows, key=lambda row: (row.at, row.instance)))


def _waves(looked_at: Sequence[Opening], rest: _Rest, evidence: Evidence) -> list[_Wave]:
    waves: list[_Wave] = []
    for opening in looked_at:
        wave = _wave(opening, rest, CHANCE / len(looked_at))
        if wave and not _told(wave, waves) and not _known(wave, evidence):
            waves.append(wave)
    return waves


def _wave(opening: Opening, rest: _Rest, chance: float) -> _Wave | None:
    """Return the wave of an opening; None when it is none."""
    slots, at = opening.slots, opening.at
    usual = _usual(opening, rest)
    if usual is None or not _slow(slots, at, usual, chance):
        return None
    end = at + 1
    while end < len(slots) and _slow(slots, end, usual, CHANCE):
        end += 1
    wave = _Wave(opening, usual, end, int(slots.slower(usual.p99_ms)[at:end].sum()))
    if wave.worst_ms < _COSTS * usual.p50_ms or not _ends(wave):
        return None
    return None if opening.instance and _everywhere(wave, rest.whole) else wave


def _ends(wave: _Wave) -> bool:
    """Tell whether latency is back to usual within or after the last slot of the wave."""
    slots = wave.opening.slots
    middle = slots.quantile_ms([wave.end - 1], 0.5)
    return wave.end < len(slots) or (middle is not None and middle <= wave.usual.p99_ms)


def _usual(opening: Opening, rest: _Rest) -> _Usual | None:
    """Return what is usual elsewhere and, where that is slower, later in the same replica."""
    slots = opening.slots
    elsewhere = _of(rest.whole, rest.of(rest.whole, 0, opening))
    if elsewhere is None:
        return None
    own = _of(slots, rest.of(slots, (opening.at + len(slots)) // 2 + 1, opening))
    if own is None or own.n < _FOR_P50:
        return elsewhere
    return _Usual(
        elsewhere.n,
        own.p50_ms,
        max(own.p99_ms, elsewhere.p99_ms),
        max(own.max_ms, elsewhere.max_ms),
    )


def _of(slots: Slots, at: NDArray[np.intp]) -> _Usual | None:
    n = int(slots.n[at].sum())
    p50, p99 = slots.quantile_ms(at, 0.5), slots.quantile_ms(at, 0.99 if n >= _FOR_P99 else 1.0)
    if p50 is None or p99 is None:
        return None
    return _Usual(n, p50, p99, float(slots.max_ms[at].max()))


def _slow(slots: Slots, at: int, usual: _Usual, chance: float) -> bool:
    """Tell whether a slot is slow beyond chance.

    The chance that the slowest of all requests is one of these is their share. That it is slower
    than the next by a factor, too, is taken to be the share over that factor: a Pareto tail of
    index 1, heavier than that of any service whose mean exists.
    """
    n = int(slots.n[at])
    slow = int(slots.slower(usual.p99_ms)[at])
    if usual.n >= _FOR_P99 and slow and upper_tail(slow, n, _BEYOND_P99) < chance:
        return True
    worst = float(slots.max_ms[at])
    return worst > usual.max_ms and n / (n + usual.n) * (usual.max_ms / worst) < chance


def _everywhere(wave: _Wave, whole: Slots) -> bool:
    """Tell whether the other replicas were half as often slow at the same time, or more."""
    slots, limit = wave.opening.slots, wave.usual.p99_ms
    own = slice(wave.opening.at, wave.end)
    same = np.isin(whole.start_ns, slots.start_ns[own])
    n = int(whole.n[same].sum() - slots.n[own].sum())
    slow = int(whole.slower(limit)[same].sum() - slots.slower(limit)[own].sum())
    return n > 0 and 2 * slow / n >= wave.n / int(slots.n[own].sum())


def _told(wave: _Wave, told: Sequence[_Wave]) -> bool:
    """Tell whether a replica's wave says the same already."""
    return not wave.opening.instance and any(
        one.start_ns <= wave.last_ns and one.last_ns >= wave.start_ns for one in told
    )


def _known(wave: _Wave, evidence: Evidence) -> bool:
    panes = np.array([wave.start_ns, wave.last_ns])
    return bool(touched(panes, evidence.slot_ns, evidence.cold_windows).any())


def _suspect(wave: _Wave, evidence: Evidence) -> SuspectedStart:
    opening = wave.opening
    return SuspectedStart(
        sign=opening.sign,
        at=rfc3339(_first_ns(wave, evidence)),
        instance=opening.instance,
        idle_s=_idle_s(opening, evidence.total.sample),
        n=wave.n,
        worst_ms=wave.worst_ms,
        usual_ms=wave.usual.p50_ms,
    )


def _first_ns(wave: _Wave, evidence: Evidence) -> int:
    """Return when its first slow request came, where that one was kept; else the slot's start."""
    instance, end_ns = wave.opening.instance, wave.last_ns + evidence.slot_ns
    source = evidence.cohorts if instance else evidence.total
    sample = source.sample
    slow = sample.values[:, source.stages.index(TOTAL)] > wave.usual.p99_ms
    inside = (sample.ts_ns >= wave.start_ns) & (sample.ts_ns < end_ns)
    if instance:
        inside &= np.isin(sample.group, _groups_of(source, instance))
    times = sample.ts_ns[slow & inside]
    return int(times.min()) if len(times) else wave.start_ns


def _idle_s(opening: Opening, sample: Sample) -> float | None:
    """Return the silence to the request where all were kept, else to the slot."""
    start_ns = opening.slots.start_ns[opening.at]
    before = sample.ts_ns[sample.ts_ns < start_ns]
    after = sample.ts_ns[sample.ts_ns >= start_ns]
    kept = bool((sample.tau == NO_LIMIT).all())
    if opening.idle_s is None or not kept or not len(before) or not len(after):
        return opening.idle_s
    return float(after.min() - before.max()) / 1e9


def _groups_of(cohorts: Summary, instance: str) -> list[int]:
    named = (instance_of(cohort) for cohort in cohorts.cohorts)
    return [at for at, pair in enumerate(named) if pair and pair[0][1] == instance]
