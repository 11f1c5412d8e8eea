"""How much the rows of one tick move together: they count for fewer than they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.tick import Tick
from tailbudget.models.per_key import Field, PerKey

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MOST_A_SECOND: Final = 40.0
_LONGEST_S: Final = 5.0
_LEAST_ROWS: Final = 3.0
_SHARE: Final = 0.01
_IGNORED: Final = 0.005  # a variance that small is chance


class Clumps(PerKey):
    """Variance of tick means beyond chance, from differences of successive ticks.

    Attributes:
        raw: [K] running variance.
        mean: [K] mean score of the last tick with enough rows.
        rows: [K] its rows.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "raw": ((), 0.02),
        "mean": ((), 0.0),
        "rows": ((), 0.0),
    }
    raw: Floats
    mean: Floats
    rows: Floats

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[tuple[float, Floats, Floats]] = deque()

    def effective(self, rows: Floats, elapsed_s: float) -> Floats:
        """Return [K] how many independent rows the rows of one tick are worth.

        However many rows come, a slow jitter moves all of them: a second is worth at most
        `MOST_A_SECOND`.
        """
        worth = rows / (1 + rows * np.maximum(self.raw - _IGNORED, 0.0))
        return np.minimum(worth, MOST_A_SECOND * min(max(elapsed_s, 0.0), _LONGEST_S))

    def add(self, now_s: float, tick: Tick) -> None:
        """Hold a tick until it is known whether it was sound."""
        self._waiting.append((now_s, tick.mean, tick.rows))

    def settle(self, now_s: float, delay_s: float, sound: Mask, blocked_s: Floats) -> None:
        """Count the ticks that have waited, of keys that are sound and were not alarmed then."""
        while self._waiting and now_s - self._waiting[0][0] >= delay_s:
            at_s, mean, rows = self._waiting.popleft()
            part = slice(0, len(rows))
            enough = rows >= _LEAST_ROWS
            ok = enough & (self.rows[part] >= _LEAST_ROWS) & sound[part] & (at_s > blocked_s[part])
            chance = 0.5 * (1 / np.maximum(rows, 1) + 1 / np.maximum(self.rows[part], 1))
            moved = 0.5 * (mean - self.mean[part]) ** 2 - chance
            step = _SHARE * (np.clip(moved, -1.0, 2.0) - self.raw[part])
            self.raw[part] += np.where(ok, step, 0.0)
            self.mean[part] = np.where(enough, mean, self.mean[part])
            self.rows[part] = np.where(enough, rows, self.rows[part])
