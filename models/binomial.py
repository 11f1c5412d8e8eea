"""Is a count more than chance? A bound on the tails of the binomial distribution."""

from __future__ import annotations

import math


def upper_tail(k: int, n: int, p: float) -> float:
    """Return a bound, never too low, on the chance of `k` or more hits in `n` tries.

    The terms beyond `k` shrink at least as fast as a geometric series does: W. Feller, An
    Introduction to Probability Theory, volume I, VI.3. At a chance of 1 % the bound is at most a
    sixth too high. At or below the expected count it says 1.

    Args:
        k: hits, 0 to `n`.
        n: tries.
        p: chance of a hit, above 0 and below 1.
    """
    if k <= (n + 1) * p:
        return 1.0
    log_term = (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
    )
    return min(math.exp(log_term) * (k + 1) * (1 - p) / (k + 1 - (n + 1) * p), 1.0)


def lower_tail(k: int, n: int, p: float) -> float:
    """Return a bound, never too low, on the chance of `k` or fewer hits in `n` tries."""
    return upper_tail(n - k, n, 1 - p)
