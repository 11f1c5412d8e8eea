"""What a histogram of buckets says of latency, with the names of the JSON report.

A percentile lies above one bound and at most at the other; nobody knows where between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tailbudget.schemas.verdicts import Verdict

END_TO_END: Final = "end_to_end"
"""What the buckets of the whole request are of."""

TIMINGS: Final = ("ttft", "itl", "tpot")
"""Timings of tokens: the time to the first, between two, and of each output token."""

REASON: Final = "the source is a histogram: it counts requests by bucket, and holds no single one"
"""Why nothing else is measured."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One percentile of one histogram.

    Attributes:
        of: `END_TO_END`, one of `TIMINGS`, or a part of the request such as "queue".
        metric: name of the metric.
        n: what was counted.
        mean_ms: the exact mean; None where no sum is told.
        percentile: "p50", "p95" or "p99".
        low_ms: it lies above this, or at 0.
        high_ms: and at most at this; None where it lies beyond the last bound.
        slo_ms: the target; None when nothing is promised.
        status: the judgement; None when there is nothing to judge by.
    """

    of: str
    metric: str
    n: int
    mean_ms: float | None
    percentile: str
    low_ms: float
    high_ms: float | None
    slo_ms: float | None
    status: Verdict | None
