"""How many requests there are and how many are bad: what a breach hangs on, at little cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.summary import FIXED_STAGES, TOTAL, Summary

_TOTAL = FIXED_STAGES.index(TOTAL)


@dataclass(frozen=True, slots=True)
class Counts:
    """Requests of some groups.

    Attributes:
        requests: all of them, weighted.
        unmeasured: those that neither failed nor have a latency.
        over: threshold to those that are bad for it: slower, or failed. Ascending; only thresholds
            that every part counted.
    """

    requests: int
    unmeasured: int
    over: dict[float, int]

    def bad(self, threshold_ms: float) -> int | None:
        """Return the requests that are not within a threshold; None where that was not counted."""
        over = self.over.get(threshold_ms)
        return None if over is None else over + self.unmeasured


def counts_of(summary: Summary, groups: slice | NDArray[np.bool_]) -> Counts:
    """Return the counts of some groups of a summary."""

    def total(values: NDArray[np.int64]) -> Any:
        return values[groups].sum(axis=0)

    requests = int(total(summary.requests))
    return Counts(
        requests=requests,
        unmeasured=requests - int(total(summary.failed)) - int(total(summary.n[:, _TOTAL])),
        over=dict(zip(summary.thresholds_ms, total(summary.over).tolist(), strict=True)),
    )


def sum_counts(parts: Iterable[Counts | None]) -> Counts:
    """Add up counts; None is that of a part without requests."""
    some = [part for part in parts if part is not None]
    common = set(some[0].over).intersection(*(part.over for part in some)) if some else set[float]()
    return Counts(
        requests=sum(part.requests for part in some),
        unmeasured=sum(part.unmeasured for part in some),
        over={at: sum(part.over[at] for part in some) for at in sorted(common)},
    )
