"""Service-level objectives."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

QUANTILES: Final = {"p50": Fraction(1, 2), "p95": Fraction(19, 20), "p99": Fraction(99, 100)}
"""The percentiles that a target may name, exact: ranks are computed in whole numbers."""


@dataclass(frozen=True, slots=True)
class SloTarget:
    """The latency that a service promises; None means no promise for that percentile.

    Attributes:
        p50_ms: half of the requests are no slower.
        p95_ms: 95 % of the requests are no slower.
        p99_ms: 99 % of the requests are no slower.
        error_budget_pct: share of requests that may fail or be slower than `p99_ms`, per cent.
    """

    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    error_budget_pct: float = 1.0

    def items(self) -> tuple[tuple[str, float], ...]:
        """Return the (percentile, milliseconds) pairs that are promised."""
        pairs = (("p50", self.p50_ms), ("p95", self.p95_ms), ("p99", self.p99_ms))
        return tuple((name, ms) for name, ms in pairs if ms is not None)

    def thresholds_ms(self) -> tuple[float, ...]:
        """Return the distinct promised latencies, ascending."""
        return tuple(sorted({ms for _, ms in self.items()}))
