"""How a detector did on one run: by key-seconds, by starts, and by onsets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.faulty.generate import FaultyTraffic
from tailbudget.streams.faulty.truth import FAULTY, SOUND

START_S: Final = 200
"""Before it detectors learn, and are not judged."""


@dataclass(slots=True)
class Tally:
    """Counts that add up over runs.

    Attributes:
        found: key-seconds that are faulty and alarmed.
        missed: faulty and not alarmed.
        false: sound and alarmed.
        sound: sound key-seconds judged.
        false_starts: alarms that began in a sound second.
        delays_s: of each onset from the first slowed request; infinite where it was missed.
    """

    found: int = 0
    missed: int = 0
    false: int = 0
    sound: int = 0
    false_starts: int = 0
    delays_s: list[float] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """Return the share of alarmed key-seconds that are faulty, NaN if none is alarmed."""
        return _share(self.found, self.found + self.false)

    @property
    def recall(self) -> float:
        """Return the share of faulty key-seconds that are alarmed, NaN if none is faulty."""
        return _share(self.found, self.found + self.missed)

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall, NaN without faults."""
        if not self.found + self.missed:
            return float("nan")
        return 2 * self.found / (2 * self.found + self.missed + self.false)

    @property
    def false_starts_a_day(self) -> float:
        """Return false starts a key-day."""
        return _share(self.false_starts, self.sound) * 86_400

    def delay_s(self, percentile: float) -> float:
        """Return a percentile of the delay, infinite where so many were missed."""
        ordered = sorted(self.delays_s)
        if not ordered:
            return float("nan")
        return ordered[min(int(percentile / 100 * len(ordered)), len(ordered) - 1)]


def score(traffic: FaultyTraffic, alarmed: NDArray[np.bool_], tick_s: float) -> Tally:
    """Judge alarms [K, ticks] by the truth of a run."""
    label = traffic.truth.label
    keys, seconds = label.shape
    per = round(1 / tick_s) if tick_s < 1 else 1
    at_end = alarmed[:, : seconds * per].reshape(keys, seconds, per)[:, :, -1]
    judged = np.arange(seconds) >= START_S
    faulty, sound = (label == FAULTY) & judged, (label == SOUND) & judged
    starts = np.diff(alarmed.astype(np.int8), axis=1, prepend=0) == 1
    key, tick = np.nonzero(starts)
    second = np.minimum((tick * tick_s).astype(np.int64), seconds - 1)
    return Tally(
        found=int((at_end & faulty).sum()),
        missed=int((~at_end & faulty).sum()),
        false=int((at_end & sound).sum()),
        sound=int(sound.sum()),
        false_starts=int(sound[key, second].sum()),
        delays_s=_delays(traffic, alarmed, tick_s),
    )


def total(tallies: Iterable[Tally]) -> Tally:
    """Add up tallies."""
    together = Tally()
    for tally in tallies:
        together.found += tally.found
        together.missed += tally.missed
        together.false += tally.false
        together.sound += tally.sound
        together.false_starts += tally.false_starts
        together.delays_s += tally.delays_s
    return together


def _delays(traffic: FaultyTraffic, alarmed: NDArray[np.bool_], tick_s: float) -> list[float]:
    delays = []
    for onset in traffic.truth.onsets:
        first = int(onset.start_s / tick_s)
        found = np.flatnonzero(alarmed[onset.key, first : int(onset.end_s / tick_s) + 2])
        late = (first + found[0] + 1) * tick_s - onset.start_s if len(found) else float("inf")
        delays.append(max(late, 0.0))
    return delays


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
