"""What a histogram of buckets says of latency: bounds of percentiles, and never a point.

A percentile is the value of nearest rank (ceil(q * n)), and lies in the bucket that holds that
rank, nobody knows where. Interpolating inside of the bucket, as PromQL does, makes up a figure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Decision = Literal["ok", "breach", "undecidable"]


@dataclass(frozen=True, slots=True)
class Buckets:
    """Cumulative counts of a histogram.

    Attributes:
        upper_ms: [k] upper bounds, ascending; the last one is infinity.
        count: [k] requests of at most that long, never decreasing.
        sum_ms: of all requests; None where it is not told.
    """

    upper_ms: tuple[float, ...]
    count: tuple[int, ...]
    sum_ms: float | None

    def __post_init__(self) -> None:
        """Refuse what is no histogram (`ValueError`)."""
        ascending = all(a < b for a, b in zip(self.upper_ms, self.upper_ms[1:], strict=False))
        growing = all(a <= b for a, b in zip(self.count, self.count[1:], strict=False))
        if not self.upper_ms or len(self.upper_ms) != len(self.count):
            raise ValueError("no buckets")
        if not ascending or not growing or self.count[0] < 0 or self.upper_ms[-1] != math.inf:
            raise ValueError("buckets do not ascend to infinity")

    @property
    def n(self) -> int:
        """How many requests there were."""
        return self.count[-1]

    @property
    def mean_ms(self) -> float | None:
        """The exact mean; None where no sum is told, or nothing was counted."""
        return self.sum_ms / self.n if self.sum_ms is not None and self.n else None

    def scaled(self, factor: float) -> Buckets:
        """Return the same in another unit, a factor of the first above 0."""
        upper = tuple(bound * factor for bound in self.upper_ms)
        return Buckets(upper, self.count, None if self.sum_ms is None else self.sum_ms * factor)

    def bounds_ms(self, q: float | Fraction) -> tuple[float, float] | None:
        """Return (low, high]: the percentile lies between; None where nothing was counted."""
        if not self.n:
            return None
        rank = max(math.ceil(q * self.n), 1)
        at = next(index for index, count in enumerate(self.count) if count >= rank)
        return (self.upper_ms[at - 1] if at else 0.0), self.upper_ms[at]

    def decide(self, q: float | Fraction, target_ms: float) -> Decision:
        """Return whether the percentile keeps a target, if the buckets tell at all."""
        found = self.bounds_ms(q)
        if found is None:
            return "undecidable"
        low, high = found
        if high <= target_ms:
            return "ok"
        return "breach" if low >= target_ms else "undecidable"
