"""Tallies of hand-made events, for tests of budgets and burn rates."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tailbudget.models.slo_counts import SloCounts
from tailbudget.models.tally import merge_tallies
from tailbudget.schemas.tally import Count, Tally

SECOND_NS = 10**9
T0_NS = 1_772_445_600 * SECOND_NS  # 2026-03-02T10:00:00Z


def tally_of(rows: Iterable[tuple[int, int, int]], *, slice_s: int = 1, unknown: int = 0) -> Tally:
    """Return (second after T0, total, bad) rows as a tally of slices, with unknown events each."""
    parts = [
        Tally(
            SECOND_NS,
            np.array([T0_NS + second * SECOND_NS]),
            np.array([total]),
            np.array([bad]),
            np.array([unknown]),
        )
        for second, total, bad in rows
    ]
    return merge_tallies(parts, slice_s * SECOND_NS)


class Replay:
    """One request a second over event time, with counts that a judge can ask for.

    Attributes:
        counts: what was counted so far.
    """

    def __init__(self, capacity_s: int) -> None:
        self.counts = SloCounts(SECOND_NS, capacity_s)
        self._now_ns = T0_NS

    def fill(self, first_s: int, last_s: int, *, total: int = 1, bad: int = 0) -> None:
        """Add the same events in each second of [first_s, last_s)."""
        n = last_s - first_s
        starts = T0_NS + np.arange(first_s, last_s) * SECOND_NS
        self.counts.add(
            Tally(SECOND_NS, starts, np.full(n, total), np.full(n, bad), np.zeros(n, np.int64))
        )

    def at(self, second: int) -> Replay:
        """Ask as of the end of a second."""
        self._now_ns = T0_NS + second * SECOND_NS - 1
        return self

    @property
    def now_ns(self) -> int:
        """Event time that is asked for."""
        return self._now_ns

    def __call__(self, seconds: int) -> Count:
        """Return the events of a window that ends now."""
        return self.counts.last(self._now_ns, seconds * SECOND_NS)
