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
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.binomial import upper_tail
from tailbudget.models.evidence import Evidence, touched
from tailbudget.models.openings import Opening, openings
from tailbudget.models.sample import NO_LIMIT
from tailbudget.models.slots import Slots, slots_of
from tailbudget.models.snapshot import CHANCE
from tailbudget.schemas.cohorts import instance_of
from tailbudget.schemas.sections import SuspectedStart
from tailbudget.schemas.summary import TOTAL, Sample, Summary

MOST: Final = 20
"""Suspects of one report; of more the slowest are told."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
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

    @property
    def worst_ms(self) -> float:
        return float(self.opening.slots.max_ms[self.opening.at : self.end].max())


def suspects(evidence: Evidence) -> tuple[SuspectedStart, ...]:
    """Return what looks like an unannounced cold start, in order of time, each once."""
    whole = slots_of(evidence.timeline)
    looked_at = list(openings(evidence, whole))
    waves: list[_Wave] = []
    for opening in looked_at:
        wave = _wave(opening, whole, CHANCE / len(looked_at))
        if wave and not _told(wave, waves) and not _known(wave, evidence):
            waves.append(wave)
    waves = sorted(waves, key=lambda wave: -wave.worst_ms)[:MOST]
    rows = [_suspect(wave, evidence) for wave in waves]
    return tuple(sorted(rows, key=lambda row: (row.at, row.instance)))


def _wave(opening: Opening, whole: Slots, chance: float) -> _Wave | None:
    """Return the wave of an opening; None when it is none."""
    wave = _extent(opening, whole, opening.at + 1, chance)
    # What is usual was measured with the rest of the wave in it: leave that out, and look again.
    if wave is not None and wave.end > opening.at + 1:
        wave = _extent(opening, whole, wave.end, chance)
    if wave is None or wave.worst_ms < _COSTS * wave.usual.p50_ms or not _ends(wave):
        return None
    return None if opening.instance and _everywhere(wave, whole) else wave


def _extent(opening: Opening, whole: Slots, end: int, chance: float) -> _Wave | None:
    """Return how far an opening is slow, by what is usual outside of its slots up to `end`."""
    slots, at = opening.slots, opening.at
    usual = _usual(opening, whole, end)
    if usual is None or not _slow(slots, at, usual, chance):
        return None
    end = at + 1
    while end < len(slots) and _slow(slots, end, usual, CHANCE):
        end += 1
    return _Wave(opening, usual, end, int(slots.slower(usual.p99_ms)[at:end].sum()))


def _ends(wave: _Wave) -> bool:
    """Tell whether latency is back to usual within or after the last slot of the wave."""
    slots = wave.opening.slots
    middle = slots.quantile_ms([wave.end - 1], 0.5)
    return wave.end < len(slots) or (middle is not None and middle <= wave.usual.p99_ms)


def _usual(opening: Opening, whole: Slots, end: int) -> _Usual | None:
    """Return what is usual elsewhere and, where that is slower, later in the same replica."""
    own_slots = opening.slots.start_ns[opening.at : end]
    others = np.flatnonzero(~np.isin(whole.start_ns, own_slots))
    elsewhere = _of(whole, others)
    if elsewhere is None:
        return None
    later = np.arange((opening.at + len(opening.slots)) // 2 + 1, len(opening.slots))
    own = _of(opening.slots, later)
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
        at=_rfc3339(_first_ns(wave, evidence)),
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


def _rfc3339(time_ns: int) -> str:
    at = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
