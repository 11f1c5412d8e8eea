"""How long a service takes to be warm after a deploy, learnt from its stages.

After a deploy the residual of each stage, the logarithm of measured by expected time, is averaged
by five seconds. Warm is the first moment from which on, in the mean of half a minute, no stage is
slower by more than what is no anomaly either, as far as chance lets one tell. What is not warm
within half an hour is not a cold start, and teaches nothing; nor does a deploy that the next one
overtakes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

BIN_NS: Final = 5_000_000_000
HOLD_BINS: Final = 6
"""Half a minute of normal latency: two or three replicas that come up one after the other are
not taken for one that is warm."""

MOST_BINS: Final = 360
"""Half an hour."""

NORMAL: Final = math.log(1.05)
"""Five per cent are left alone by the anomaly tests, too (`anomaly.allowance`)."""

LEAST_ROWS: Final = 20
"""Rows of a stage in half a minute that say something: fewer leave it open."""

LEAST_DEPLOYS: Final = 2
LAST_DEPLOYS: Final = 5
"""The longest of the last five is taken: a window that is too short lets a cold start alarm."""

LEAST_MIN: Final = 0.5
_Z: Final = 2.0
_FARTHEST: Final = math.log(4.0)


@dataclass(slots=True)
class Following:
    """One deploy whose warm-up is being watched.

    Attributes:
        start_ns: when it began.
        sums: stage to [MOST_BINS, 3]: rows, sum of residuals, sum of their squares.
        warm: the first bin that may be warm; those before are not.
        ends: one past the newest bin that is complete.
    """

    start_ns: int
    sums: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    warm: int = 0
    ends: int = 0

    def judge(self) -> int | None:
        """Return the bin from which on all was normal; None while that is open."""
        while self.warm + HOLD_BINS <= self.ends:
            verdict = self._normal(self.warm)
            if verdict is None:
                return None
            if verdict:
                return self.warm
            self.warm += 1
        return None

    def _normal(self, low: int) -> bool | None:
        """Tell whether no stage is slow from a bin on; None when too few rows say so."""
        known = False
        for sums in self.sums.values():
            n, total, square = sums[low : low + HOLD_BINS].sum(axis=0).tolist()
            if n < LEAST_ROWS:
                n, total, square = sums[low : self.ends].sum(axis=0).tolist()
            if n < LEAST_ROWS:
                continue
            known, mean = True, total / n
            error = math.sqrt(max(square / n - mean * mean, 0.0) / n)
            if mean > NORMAL + _Z * error:
                return False
        return True if known else None


class WarmUps:
    """Warm-up lengths of one service.

    Attributes:
        lengths_s: start of the last deploys that became warm, and after how many seconds.
    """

    def __init__(self) -> None:
        self.lengths_s: dict[int, float] = {}
        self._following: Following | None = None
        self._newest_ns = 0

    @property
    def known_min(self) -> float | None:
        """Minutes after a deploy until the service is warm; None until enough deploys told."""
        if len(self.lengths_s) < LEAST_DEPLOYS:
            return None
        return max(max(self.lengths_s.values()) / 60, LEAST_MIN)

    @property
    def following(self) -> bool:
        """Return whether a deploy is being watched."""
        return self._following is not None

    def follow(self, starts_ns: Sequence[int], now_ns: int) -> None:
        """Watch the newest of these deploys that has begun, unless it was watched before."""
        begun = [at for at in starts_ns if self._newest_ns < at <= now_ns]
        if begun:
            self._newest_ns = max(begun)
            fresh = now_ns - self._newest_ns < MOST_BINS * BIN_NS
            self._following = Following(self._newest_ns) if fresh else None

    def add(self, now_ns: int, stages: Sequence[str], residual: NDArray[np.float64]) -> None:
        """Add the residuals [N] of a tick, each of a stage; learn when it has become warm."""
        one = self._following
        if one is None or now_ns < one.start_ns:
            return
        place = (now_ns - one.start_ns) // BIN_NS
        if place >= MOST_BINS:
            self._following = None
            return
        one.ends = int(place)
        bounded = np.clip(residual, -_FARTHEST, _FARTHEST)
        names = np.array(stages, np.str_)
        for stage in sorted(set(stages)):
            mine = bounded[names == stage]
            sums = one.sums.setdefault(stage, np.zeros((MOST_BINS, 3)))
            sums[place] += len(mine), mine.sum(), (mine * mine).sum()
        warm = one.judge()
        if warm is not None:
            self.lengths_s[one.start_ns] = warm * BIN_NS / 1e9
            for old in sorted(self.lengths_s)[:-LAST_DEPLOYS]:
                del self.lengths_s[old]
            self._following = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is to be saved; of a deploy that is being watched nothing is kept."""
        return {
            "lengths_s": {str(at): length for at, length in self.lengths_s.items()},
            "newest_ns": self._newest_ns,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> WarmUps:
        """Return what was saved.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        found = cls()
        found.lengths_s = {int(at): float(s) for at, s in saved["lengths_s"].items()}
        found._newest_ns = int(saved["newest_ns"])
        return found
