"""Good and bad events by slice of time: what error budgets and burn rates are counted from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Count:
    """Events of a span.

    Attributes:
        total: events known to count.
        bad: those of them that were bad.
        unknown: events that may count, or may be bad, and nobody can say.
    """

    total: int = 0
    bad: int = 0
    unknown: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.total + other.total, self.bad + other.bad, self.unknown + other.unknown)


@dataclass(frozen=True, slots=True)
class Tally:
    """Events of one objective by slice of time.

    Attributes:
        slice_ns: length of a slice; slices start at its multiples since 1970.
        start_ns: [N] start of each slice that has events, ascending, unique.
        total: [N] events known to count, weighted.
        bad: [N] those of them that were bad.
        unknown: [N] events that may count, or may be bad, and nobody can say.
    """

    slice_ns: int
    start_ns: NDArray[np.int64]
    total: NDArray[np.int64]
    bad: NDArray[np.int64]
    unknown: NDArray[np.int64]
