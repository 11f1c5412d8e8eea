"""Between which ranks does a quantile lie? Binomial ranks, whatever the distribution.

The quantile q is above the value at rank u with the chance of u or more hits in n tries of q, and
below that at rank l with the chance of fewer than l (G. Hahn and W. Meeker, Statistical
Intervals, 1991, 5.2). The tails are bounded from above, so that the interval is never too short.
It takes requests to be independent; bursts make it too short.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from tailbudget.models.binomial import lower_tail, upper_tail

CONFIDENCE_PCT: Final = 95.0

_BEYOND: Final = (1 - CONFIDENCE_PCT / 100) / 2


def upper_rank(n: int, quantile: Fraction) -> int | None:
    """Return the first rank that is above the quantile of all, up to 2.5 %; None beyond `n`."""
    q = float(quantile)
    return _first(n, lambda rank: upper_tail(rank, n, q) <= _BEYOND)


def lower_rank(n: int, quantile: Fraction) -> int | None:
    """Return the last rank that is below the quantile of all, up to 2.5 %; None below 1."""
    q = float(quantile)
    above = _first(n, lambda rank: lower_tail(rank - 1, n, q) > _BEYOND)
    last = n if above is None else above - 1
    return last or None


def _first(n: int, holds: Callable[[int], bool]) -> int | None:
    """Return the first rank from 1 to `n` that something holds of, and of all that follow."""
    if n < 1 or not holds(n):
        return None
    low, high = 1, n
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
