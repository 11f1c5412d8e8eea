"""Do two sets of requests have the same percentile? Counts beyond the pooled one, and ranks.

The test is the median test of A. M. Mood (Introduction to the Theory of Statistics, 1950) at any
quantile (W. J. Conover, Practical Nonparametric Statistics, 3rd ed., 4.3): where both sides are
alike, the requests beyond the quantile of both together fall to the sides as a hypergeometric
distribution says. It looks at ranks alone, so it holds for any shape of latencies, it needs
nothing but mergeable histograms, and a failure is simply slower than all.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from tailbudget.models.sides import Side
from tailbudget.schemas.sections import Interval

_Z: Final = 1.959964  # two-sided 95 % of the normal distribution
_REACH: Final = 12.0  # standard deviations beyond which a tail adds nothing to 15 digits


def p_value(before: Side, now: Side, quantile: Fraction) -> float | None:
    """Return the chance that equal sides differ so much at a quantile; None on too few requests.

    The bucket that the pooled quantile lies in is shared out in proportion on either side. That
    varies less than the order of single values in it would, so the test errs on the safe side.
    """
    if not (before.measures(quantile) and now.measures(quantile)):
        return None
    first, second = before.counts(), now.counts()
    below = np.cumsum(first + second)
    rank = float(below[-1]) * float(quantile)
    bucket = int(np.searchsorted(below, rank))
    share = (below[bucket] - rank) / (first[bucket] + second[bucket])
    beyond = [round(side[bucket + 1 :].sum() + share * side[bucket]) for side in (first, second)]
    n = [round(side.sum()) for side in (first, second)]
    return hypergeometric_p(beyond[1], sum(beyond), n[1], sum(n))


def hypergeometric_p(k: int, marked: int, drawn: int, n: int) -> float:
    """Return the two-sided chance of `k` marked among those drawn: twice the smaller tail.

    Args:
        k: marked ones that were drawn.
        marked: marked ones in all, as Fisher's exact test has them fixed.
        drawn: how many were drawn.
        n: how many there are.
    """
    upper = _upper_tail(k, marked, drawn, n)
    lower = _upper_tail(drawn - k, n - marked, drawn, n)
    return min(1.0, 2 * min(upper, lower))


def _upper_tail(k: int, marked: int, drawn: int, n: int) -> float:
    """Return the chance of `k` or more, summed term by term from the first."""
    deviation = math.sqrt(marked / n * (n - marked) / n * drawn * (n - drawn) / max(n - 1, 1))
    mode = (marked + 1) * (drawn + 1) // (n + 2)
    if k < mode - _REACH * deviation:
        return 1.0
    last = min(marked, drawn, max(k, mode) + math.ceil(_REACH * deviation) + 40)
    terms = np.arange(k, last, dtype=np.float64)
    ratios = (marked - terms) * (drawn - terms) / ((terms + 1) * (n - marked - drawn + terms + 1))
    logs = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    return min(1.0, float(np.exp(logs + _log_chance(k, marked, drawn, n)).sum()))


def _log_chance(k: int, marked: int, drawn: int, n: int) -> float:
    return _log_choices(marked, k) + _log_choices(n - marked, drawn - k) - _log_choices(n, drawn)


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def difference_interval_ms(before: Side, now: Side, quantile: Fraction) -> Interval | None:
    """Return the 95 % interval of now less before; None where either end is no latency.

    Each side's limits are order statistics (Conover, 3.2); those of the difference recover the
    variances from them: G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008) 1693.
    """
    if not (before.measures(quantile) and now.measures(quantile)):
        return None
    old, new = _limits_ms(before, quantile), _limits_ms(now, quantile)
    if old is None or new is None:
        return None
    delta = new[1] - old[1]
    low = math.hypot(new[1] - new[0], old[2] - old[1])
    high = math.hypot(new[2] - new[1], old[1] - old[0])
    return delta - low, delta + high


def _limits_ms(side: Side, quantile: Fraction) -> tuple[float, float, float] | None:
    """Return the lower limit of a quantile, itself, and the upper limit."""
    n, q = side.n, float(quantile)
    spread = _Z * math.sqrt(n * q * (1 - q) / side.scale)
    low = side.ranks.value_ms(max(math.floor(n * q - spread), 1))
    middle = side.quantile_ms(quantile)
    high = side.ranks.value_ms(min(math.ceil(n * q + spread) + 1, n))
    if low is None or middle is None or high is None:
        return None
    return low, middle, high


def holm(p_values: list[float | None], level: float) -> list[bool | None]:
    """Return which tests hold at a level over all of them; None stays None.

    S. Holm, Scandinavian Journal of Statistics 6 (1979) 65. It holds however the tests depend on
    one another, as a total does on its stages, and a p95 on a p99. (Benjamini and Hochberg's rule
    finds more, but promises only that few of the rows found are wrong; a reader acts on one row.)
    """
    known = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    holds: list[bool | None] = [None if p is None else False for p in p_values]
    for done, (p, i) in enumerate(known):
        if p > level / (len(known) - done):
            break
        holds[i] = True
    return holds
