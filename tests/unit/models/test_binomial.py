"""The bounds on binomial tails, against exact sums."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import pytest

from tailbudget.models.binomial import lower_tail, upper_tail


def exact_upper(n: int, p: Fraction) -> list[float]:
    """Return the chance of k or more hits, for each k from 0 to n."""
    hit, miss = p.numerator, p.denominator - p.numerator
    ways = [math.comb(n, j) * hit**j * miss ** (n - j) for j in range(n + 1)]
    tails = list(accumulate(reversed(ways)))[::-1]
    return [float(Fraction(tail, p.denominator**n)) for tail in tails]


@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 2)])
@pytest.mark.parametrize("n", [1, 2, 10, 100, 200])
def test_upper_tail_is_a_close_bound(n: int, p: Fraction) -> None:
    """The bound is never below the exact tail, and near 1 % at most a sixth above it."""
    for k, exact in enumerate(exact_upper(n, p)):
        bound = upper_tail(k, n, float(p))
        assert bound >= exact * (1 - 1e-9) - 1e-300
        if exact < 0.01:
            assert bound <= exact * 7 / 6


def test_lower_tail_mirrors_the_upper_one() -> None:
    """No hit among 459 tries at 1 % is rarer than 1 %; among 458 it is not."""
    assert lower_tail(0, 459, 0.01) == pytest.approx(0.99**459)
    assert lower_tail(0, 459, 0.01) < 0.01 < lower_tail(0, 458, 0.01)


def test_expected_count_is_never_surprising() -> None:
    """At the expected count the bound says 1, for any number of tries."""
    assert upper_tail(10, 1_000, 0.01) == 1.0
    assert upper_tail(10**7, 10**9, 0.01) == 1.0


def test_tail_of_a_billion_tries_is_finite() -> None:
    """Large counts neither overflow nor lose the tail: 2.4 deviations are 0.8 %."""
    deviation = math.sqrt(10**9 * 0.01 * 0.99)
    bound = upper_tail(round(10**7 + 2.4 * deviation), 10**9, 0.01)
    assert bound == pytest.approx(0.0082, rel=0.2)
