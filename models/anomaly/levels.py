"""Whether a level rose: cumulative sums that know the slow jitter of what they watch.

The mean of a tick is a slow jitter plus chance. A filter follows the jitter (Kalman 1960); what it
did not foresee is independent from tick to tick, so log-likelihood ratios of that add up, as
Page's sums do (Basseville and Nikiforov, Detection of Abrupt Changes, 1993, 7.2.1). A step shows
in it in full at first, and ever less as the filter takes the step for jitter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.per_key import Field, PerKey

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

SIZES: Final = np.log([1.05, 1.1, 1.2, 1.4])
"""Sizes of a step that are tested for: of the logarithm of the latency."""
LEAST_STEP: Final = float(np.log(1.05))
"""A stage that is slower by less than 5 %, or not surely by more than nothing, is left alone."""
LARGEST_SHIFT: Final = 2.5
"""Scores are bounded: no step is larger than so many standard deviations of a row."""
JITTER_S: Final = 20.0
"""Time constant of the slow jitter; its variance is measured over as long."""
_SMALL: Final = 0.5  # what a step that is no news counts at most: it is learnt as any quiet time
_MOST_JITTER: Final = 2.0  # standard deviations: a level beyond is none that a jitter takes
_FAR: Final = 4.0  # standard deviations that one tick counts at most


@dataclass(frozen=True, slots=True)
class Seen:
    """What one tick says of some levels.

    Attributes:
        mean: [K] in units of `spread`.
        rows: [K] independent rows, 0 for none; the variance of `mean` is their inverse.
        jitter: [K] variance of the slow jitter, in units of `spread` squared.
        unsure: [K] how far off the expectation may be, in units of `spread`.
        spread: [K] unit, of the logarithm of the latency.
        least: [K] steps that are smaller are no news, in units of `spread`.
        idle: [K] not watched now.
    """

    mean: Floats
    rows: Floats
    jitter: Floats
    unsure: Floats
    spread: Floats
    least: Floats
    idle: Mask


class Levels(PerKey):
    """The sums of every key, or of every stage over its cohorts.

    Attributes:
        level: [K] the jitter as it is now, in units of the spread.
        doubt: [K] its variance.
        taken: [K, 4] share of a step that the filter has taken for jitter since the sum was zero.
        gain: [K, 4] sum of innovations, each weighted by what a step would add to it.
        worth: [K, 4] what the same sum would be for a step of 1.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "level": ((), 0.0),
        "doubt": ((), 1.0),
        "taken": ((len(SIZES),), 0.0),
        "gain": ((len(SIZES),), 0.0),
        "worth": ((len(SIZES),), 0.0),
    }
    level: Floats
    doubt: Floats
    taken: Floats
    gain: Floats
    worth: Floats

    def lift(self, jitter: Floats) -> Floats:
        """Return [K] how much of a score the slow jitter, of this variance, may explain now."""
        # Part of the level is the slow rows themselves.
        lift: Floats = np.maximum(self.level, 0.0) / 2 + np.sqrt(jitter)
        return lift

    def update(self, elapsed_s: float, seen: Seen) -> Floats:
        """Add a tick; return [K, 4] log-likelihood ratios, next to 0 for steps that are no news."""
        keep = float(np.exp(-max(elapsed_s, 0.0) / JITTER_S))
        self.level *= keep
        self.taken *= keep
        self.doubt = keep**2 * self.doubt + (1 - keep**2) * seen.jitter
        # Without rows the variance is without bound: nothing is added, and nothing is followed.
        chance = 1 / np.maximum(seen.rows, 1e-9)
        # Where the expectation is less sure than the jitter is small, the level is not followed.
        chance += np.maximum(seen.unsure**2 - seen.jitter, 0.0)
        variance = self.doubt + chance
        far = _FAR * np.sqrt(variance)
        surprise = np.clip(seen.mean - self.level, -far, far)
        follow = self.doubt / variance
        shown = 1 - self.taken
        self.gain += shown * (surprise[:, None] - shown * seen.unsure[:, None]) / variance[:, None]
        self.worth += shown**2 / variance[:, None]
        before, most = self.level, _MOST_JITTER * np.sqrt(seen.jitter)
        self.level = np.clip(before + follow * surprise, -most, most)
        moved = np.abs(self.level - before) / np.maximum(np.abs(surprise), 1e-9)
        self.taken += np.minimum(moved, follow)[:, None] * shown
        self.doubt *= 1 - follow
        return self._sums(seen)

    def _sums(self, seen: Seen) -> Floats:
        shift = np.minimum(SIZES / seen.spread[:, None], LARGEST_SHIFT)
        sums = shift * self.gain - shift**2 / 2 * self.worth
        over = (sums <= 0) | seen.idle[:, None]
        for array in (self.taken, self.gain, self.worth):
            array[over] = 0.0
        self.level[seen.idle] = 0.0
        self.doubt = np.where(seen.idle, seen.jitter, self.doubt)
        small = self.gain < seen.least[:, None] * self.worth
        return np.where(over, 0.0, np.where(small, np.minimum(sums, _SMALL), sums))
