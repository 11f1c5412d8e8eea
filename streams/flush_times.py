"""How long flushes took, counted as a Prometheus histogram counts."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import Any, Final

BOUNDS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds: a quarter of a tick up to what an orderly end may take."""


class FlushTimes:
    """Counts flushes that came to an end, by what they took.

    Attributes:
        at_s: when the last one ended, seconds since 1970; None before the first.
    """

    def __init__(self) -> None:
        self.at_s: float | None = None
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def add(self, took_s: float, *, at_s: float) -> None:
        """Count a flush.

        Args:
            took_s: how long it took.
            at_s: when it ended, seconds since 1970.
        """
        self._counts[bisect_left(BOUNDS_S, took_s)] += 1
        self._sum_s += took_s
        self.at_s = at_s

    def status(self) -> dict[str, Any]:
        """Return bounds with how many flushes took no longer, the last one being of all."""
        bounds = [*BOUNDS_S, None]
        counts = list(accumulate(self._counts))
        return {
            "at_s": self.at_s,
            "sum_s": self._sum_s,
            "buckets": [list(pair) for pair in zip(bounds, counts, strict=True)],
        }
