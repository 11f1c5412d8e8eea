"""Counting what became of records, by service, second and reason."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.sources.timetext import NS

Key = tuple[str, int, str]

_DENSE: Final = 10_000  # seconds over which counting into an array beats sorting


class Tally:
    """The ledger of one batch; times are floored to seconds so that it stays small."""

    def __init__(self) -> None:
        self.counts: Counter[Key] = Counter()

    def add(self, service: str, time_ns: int, reason: str, count: int = 1) -> None:
        """Count one thing."""
        self.counts[service, time_ns // NS * NS, reason] += count

    def add_rows(
        self,
        service: str,
        second: NDArray[np.int64],
        reason: str,
        count: NDArray[np.int64] | None = None,
    ) -> None:
        """Count rows, or `count` things in each row.

        Args:
            service: the service of all rows.
            second: [n] seconds since the epoch.
            reason: why they are counted.
            count: [n] how many things in each row; None is one.
        """
        if not len(second):
            return
        low, high = int(second.min()), int(second.max())
        if high - low <= _DENSE:
            found = np.bincount(second - low, weights=count)
            at = np.flatnonzero(found)
            pairs = zip((at + low).tolist(), found[at].tolist(), strict=True)
        else:
            at, place = np.unique(second, return_inverse=True)
            found = np.bincount(place, weights=count)
            pairs = zip(at.tolist(), found.tolist(), strict=True)
        for when, number in pairs:
            if number:
                self.counts[service, when * NS, reason] += int(number)
