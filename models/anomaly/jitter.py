"""How much a key's mean moves by itself: what the tests must not take for a fault.

The variance of a slow jitter follows from differences of window means two windows apart, less
what chance alone would give; a ramp hardly counts, and few rows do no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.tick import TAIL_SHARES, Tick
from tailbudget.models.per_key import Field, PerKey

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WINDOW_S: Final = 10.0
_LEAST_ROWS: Final = 20.0
_LEAST_SHARE: Final = 0.03  # of a new window: about 30 windows are remembered
_WEIGHT: Final = 0.75  # of a squared difference two windows apart; it spans a time constant of 20 s
_BINOMIAL: Final = np.array([p * (1 - p) for p in TAIL_SHARES])
_QUIET_S: Final = 20.0
_TAIL_CAP: Final = np.array([2e-3, 4e-4])


@dataclass(frozen=True, slots=True)
class _Waiting:
    at_s: float
    full: Mask
    mean: Floats
    tail: Floats


class Jitter(PerKey):
    """Variances of the slow jitter of each key's mean score and tail shares.

    Attributes:
        mean_raw: [K] running variance of the mean score, which may be negative by chance.
        tail_raw: [K, 2] likewise of the tail shares.
        windows: [K] how many windows were counted.
        since_s: [K] when the present window began.
        rows: [K] rows in it.
        total: [K] sum of its scores.
        exceed: [K, 2] rows beyond the tail points.
        run: [K] sound windows in a row.
        before: [K, 2, 6] the last two windows: mean, variance by chance, tail shares, theirs.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "mean_raw": ((), 0.03),
        "tail_raw": ((2,), 1e-4),
        "windows": ((), 0.0),
        "since_s": ((), 0.0),
        "rows": ((), 0.0),
        "total": ((), 0.0),
        "exceed": ((2,), 0.0),
        "run": ((), 0.0),
        "before": ((2, 6), 0.0),
    }
    mean_raw: Floats
    tail_raw: Floats
    windows: Floats
    since_s: Floats
    rows: Floats
    total: Floats
    exceed: Floats
    run: Floats
    before: Floats

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[_Waiting] = deque()

    @property
    def mean(self) -> Floats:
        """Return [K] the variance of the slow jitter of the mean score."""
        result: Floats = np.clip(self.mean_raw, 1e-3, 1.0)
        return result

    @property
    def tail(self) -> Floats:
        """Return [K, 2] that of the tail shares."""
        return np.maximum(self.tail_raw, 0.0)

    def add(self, now_s: float, tick: Tick, alarmed: Mask) -> None:
        """Add a tick; windows that are over wait until it is known whether they were sound."""
        self.rows += tick.rows
        self.total += tick.rows * tick.mean
        self.exceed += tick.exceed[:, : len(TAIL_SHARES)]
        full = (self.rows >= _LEAST_ROWS) & (now_s - self.since_s >= WINDOW_S)
        if full.any():
            self._close(now_s, full, alarmed)

    def settle(self, now_s: float, delay_s: float, sound: Mask, blocked_s: Floats) -> None:
        """Count windows that have waited: of keys that are sound and were not alarmed then."""
        while self._waiting and now_s - self._waiting[0].at_s >= delay_s:
            window = self._waiting.popleft()
            keys = len(window.full)
            ok = np.zeros(self.size, np.bool_)
            ok[:keys] = window.full & sound[:keys]
            ok &= window.at_s > blocked_s + _QUIET_S
            self._count(ok, _padded(window.mean, self.size), _padded(window.tail, self.size))

    def _close(self, now_s: float, full: Mask, alarmed: Mask) -> None:
        rows = np.maximum(self.rows, 1.0)
        mean, tail = self.total / rows, self.exceed / rows[:, None]
        chance, tail_chance = 1 / rows, _BINOMIAL / rows[:, None]
        old = self.before[:, 0]
        moved = _WEIGHT * (mean - old[:, 0]) ** 2 - 0.5 * (chance + old[:, 1])
        tail_moved = _WEIGHT * (tail - old[:, 2:4]) ** 2 - 0.5 * (tail_chance + old[:, 4:6])
        counted = full & ~alarmed & (self.run >= 2)
        self._waiting.append(_Waiting(now_s, counted, moved, tail_moved))
        self.run = np.where(full, np.where(alarmed, 0.0, self.run + 1), self.run)
        newest = np.column_stack([mean, chance, tail, tail_chance])
        self.before[full, 0] = self.before[full, 1]
        self.before[full, 1] = newest[full]
        for array in (self.rows, self.total, self.exceed):
            array[full] = 0.0
        self.since_s[full] = now_s

    def _count(self, ok: Mask, mean: Floats, tail: Floats) -> None:
        self.windows += ok
        share = np.where(ok, np.maximum(_LEAST_SHARE, 1 / (self.windows + 2)), 0.0)
        # One window moves an estimate only so far: a fault that was missed must not hide the next.
        self.mean_raw += share * (np.minimum(mean, 4 * self.mean + 0.02) - self.mean_raw)
        bounded = np.minimum(tail, 4 * self.tail + _TAIL_CAP)
        self.tail_raw += np.where(ok, _LEAST_SHARE, 0.0)[:, None] * (bounded - self.tail_raw)


def _padded(values: Floats, size: int) -> Floats:
    wide = np.zeros((size, *values.shape[1:]))
    wide[: len(values)] = values
    return wide
