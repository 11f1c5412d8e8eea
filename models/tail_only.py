"""Is a stage steady but for its tail?"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from tailbudget.models.ranks import ranks, requests_needed
from tailbudget.models.sketch import RELATIVE_ERROR
from tailbudget.models.stage_shares import Shares
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.summary import TOTAL, Summary

FAR_OUT: Final = 3.0
"""A p99 is blown when it is this many interquartile ranges above the upper quartile of its stage:
Tukey's outer fence (Exploratory Data Analysis, 1977, 2D). That of an exponential is within it."""

_LOW: Final = Fraction(1, 4)
_HIGH: Final = Fraction(3, 4)


def tail_only(total: Summary, stage: str, parts: Shares) -> bool | None:
    """Tell whether a stage's median is steady while its p99 is blown, and hurts.

    Steady and blown: the p99 lies beyond the outer fence of the stage's own quartiles, so that it
    is no part of how the stage is spread from day to day. It hurts when the stage adds more to the
    gap between slow and fast requests than an even share of the parts.

    Returns:
        None below the 1,000 requests that a p99 takes, and for a container.
    """
    n, gap_ms = int(total.n[0, total.stages.index(stage)]), parts.gap_ms(stage)
    if n < requests_needed(QUANTILES["p99"]) or gap_ms is None:
        return None
    order = ranks(total, stage)
    low, high = order.quantile_ms(_LOW), order.quantile_ms(_HIGH)
    p99 = order.quantile_ms(QUANTILES["p99"])
    if low is None or high is None or p99 is None:
        return None
    body = max(high - low, 2 * RELATIVE_ERROR * high)  # no narrower than the sketch can tell
    whole = parts.slow[TOTAL] - parts.fast[TOTAL]
    even = whole / (len(parts.slow) - 1)  # the total is among them
    return p99 > high + FAR_OUT * body and whole > 0 and gap_ms > even
