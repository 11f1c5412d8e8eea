"""The test of two quantiles, and the interval of their difference."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from requests_of import columns_of, summary_of

from tailbudget.models.quantile_test import difference_interval_ms, holm, hypergeometric_p, p_value
from tailbudget.models.sides import Side, answered

MEDIAN, P99 = Fraction(1, 2), Fraction(99, 100)


def side(total_ms: np.ndarray, failed: int = 0, scale: float = 1.0) -> Side:
    """Return successes of these latencies, and failures."""
    return replace(answered(summary_of(columns_of(total_ms.tolist()))), failed=failed, scale=scale)


def exact(k: int, marked: int, drawn: int, n: int) -> float:
    """Return twice the smaller tail, by counting all ways."""
    low, high = max(0, marked + drawn - n), min(marked, drawn)
    ways = {
        j: math.comb(marked, j) * math.comb(n - marked, drawn - j) for j in range(low, high + 1)
    }
    tails = sum(w for j, w in ways.items() if j >= k), sum(w for j, w in ways.items() if j <= k)
    return min(1.0, float(Fraction(2 * min(tails), math.comb(n, drawn))))


@pytest.mark.parametrize(("marked", "drawn", "n"), [(20, 50, 100), (3, 90, 100), (60, 70, 100)])
def test_the_chance_is_that_of_counting_all_ways(marked: int, drawn: int, n: int) -> None:
    """Every possible count has the chance that Fisher's exact test gives it."""
    for k in range(max(0, marked + drawn - n), min(marked, drawn) + 1):
        assert hypergeometric_p(k, marked, drawn, n) == pytest.approx(exact(k, marked, drawn, n))


def test_ten_million_requests_are_no_trouble() -> None:
    """The tail is summed near its middle: a share that is off by five deviations is rare."""
    n = 10_000_000
    deviation = math.sqrt(n / 16)
    k = n // 4 + round(5 * deviation)
    assert hypergeometric_p(k, n // 2, n // 2, n) == pytest.approx(5.7e-7, rel=0.02)
    assert hypergeometric_p(n // 4, n // 2, n // 2, n) == 1.0


@pytest.mark.parametrize("quantile", [MEDIAN, Fraction(19, 20), P99])
def test_equal_sides_are_seldom_told_apart(quantile: Fraction) -> None:
    """At 5 %, no more than 5 % of 300 pairs differ, but for the chance of so few pairs."""
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(300):
        before, now = (side(rng.lognormal(4, 0.7, n)) for n in (1_500, 2_500))
        p = p_value(before, now, quantile)
        assert p is not None
        found += p < 0.05
    assert found <= 26  # 15 and three deviations


def test_a_slower_tail_is_seen_where_it_is() -> None:
    """Three per cent of slow requests move the p99, and not the median."""
    rng = np.random.default_rng(1)
    plain, mixed = rng.normal(100, 5, 3_000), rng.normal(100, 5, 3_000)
    mixed[:90] += 300
    assert (p_value(side(plain), side(mixed), P99) or 1) < 1e-6
    assert (p_value(side(plain), side(mixed), MEDIAN) or 0) > 0.01


def test_equal_latencies_are_ties_and_no_obstacle() -> None:
    """All at 100 ms against all at 200 ms differ; against 100 ms they do not."""
    one, other = side(np.full(1_000, 100.0)), side(np.full(1_000, 200.0))
    assert (p_value(one, other, P99) or 1) < 1e-4
    assert p_value(one, one, P99) == 1.0


def test_failures_are_slower_than_all() -> None:
    """A side of which 3 % fail has another p99, though its successes are the same."""
    total = np.full(2_000, 100.0)
    assert (p_value(side(total), side(total, failed=60), P99) or 1) < 1e-6
    assert difference_interval_ms(side(total), side(total, failed=60), P99) is None


def test_a_sampled_log_is_no_more_evidence_than_its_records() -> None:
    """What stands for 100 requests each counts once; too few records say nothing."""
    rng = np.random.default_rng(3)
    before, now = rng.normal(100, 10, 4_000), rng.normal(101.5, 10, 4_000)
    whole = p_value(side(before), side(now), MEDIAN)
    tenth = p_value(side(before, scale=0.1), side(now, scale=0.1), MEDIAN)
    assert whole is not None
    assert tenth is not None
    assert whole < 0.01 < tenth
    assert p_value(side(before, scale=0.1), side(now), P99) is None


def test_the_interval_covers_the_true_difference() -> None:
    """Of 300 intervals of a p95 that rose by a tenth, about 95 % hold the true difference."""
    rng = np.random.default_rng(11)
    true_ms = 0.1 * math.exp(4 + 0.5 * 1.644854)
    covered = 0
    for _ in range(300):
        before, now = (side(rng.lognormal(4, 0.5, 2_000) * x) for x in (1.0, 1.1))
        interval = difference_interval_ms(before, now, Fraction(19, 20))
        assert interval is not None
        covered += interval[0] <= true_ms <= interval[1]
    assert 0.92 * 300 <= covered <= 0.99 * 300


def test_holm_steps_down_and_stops() -> None:
    """The smallest meets a third of the level, the next a half; None stays None."""
    assert holm([0.02, None, 0.001, 0.03], 0.05) == [True, None, True, True]
    assert holm([0.03, 0.001, 0.04], 0.05) == [False, True, False]
    assert holm([None], 0.05) == [None]
