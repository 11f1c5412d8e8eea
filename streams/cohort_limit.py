"""Keeps the number of cohorts of a service bounded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np

from tailbudget.models.columns import relabel
from tailbudget.schemas.cohorts import OTHER, Cohort
from tailbudget.schemas.records import Columns

IDLE_NS: Final = 3_600_000_000_000
"""A cohort that was not seen for an hour of event time makes room for a new one."""


class CohortLimit:
    """Admits up to `limit` cohorts, least recently used first to go; the rest becomes OTHER.

    A cohort in use is never evicted for a new one: figures of a pane would else change their
    meaning while it is open.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: OrderedDict[Cohort, int] = OrderedDict()

    def limited(self, columns: Columns) -> Columns:
        """Return requests with OTHER in place of cohorts that are too many.

        Those that come first are admitted, so that it does not matter how requests are batched.
        """
        present, first = np.unique(columns.cohort, return_index=True)
        present = present[np.argsort(first)]
        now_ns = int(columns.ts_ns.max(initial=0))
        admitted = self.admit([columns.cohorts[code] for code in present.tolist()], now_ns)
        cohorts = list(columns.cohorts)
        for code, cohort in zip(present.tolist(), admitted, strict=True):
            cohorts[code] = cohort
        return columns if tuple(cohorts) == columns.cohorts else relabel(columns, tuple(cohorts))

    def admit(self, cohorts: Sequence[Cohort], now_ns: int) -> tuple[Cohort, ...]:
        """Return for each cohort itself or OTHER; `now_ns` is event time."""
        return tuple(cohort if self._admits(cohort, now_ns) else OTHER for cohort in cohorts)

    def _admits(self, cohort: Cohort, now_ns: int) -> bool:
        if cohort not in self._seen and len(self._seen) >= self._limit:
            oldest = next(iter(self._seen))
            if self._seen[oldest] > now_ns - IDLE_NS:
                return False
            del self._seen[oldest]
        self._seen[cohort] = max(now_ns, self._seen.get(cohort, now_ns))
        self._seen.move_to_end(cohort)
        return True
