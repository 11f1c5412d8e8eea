"""Intervals by resampling."""

from __future__ import annotations

import numpy as np

from tailbudget.models.bootstrap import FEWEST_ROWS, mean_difference


def test_interval_is_that_of_the_normal_for_normal_rows() -> None:
    """Of 200 and 400 normal rows it reaches 1.96 standard errors to each side."""
    random = np.random.default_rng(5)
    slow, fast = random.normal(10, 3, (200, 1)), random.normal(2, 1, (400, 1))
    reach = mean_difference(slow, fast)
    assert reach is not None
    error = (slow.var() / 200 + fast.var() / 400) ** 0.5
    np.testing.assert_allclose(reach[:, 0], [-1.96 * error, 1.96 * error], rtol=0.08)


def test_nineteen_in_twenty_intervals_cover() -> None:
    """Over 300 samples of skewed times the interval covers the true difference about 95 %."""
    random = np.random.default_rng(6)
    covered = 0
    for _ in range(300):
        slow, fast = random.gamma(2, 50, (60, 1)), random.gamma(2, 10, (100, 1))
        reach = mean_difference(slow, fast)
        assert reach is not None
        low, high = slow.mean() - fast.mean() + reach[:, 0]
        covered += bool(low <= 80 <= high)
    assert 0.90 <= covered / 300 <= 0.99


def test_few_rows_have_no_interval() -> None:
    """One row less than wanted, in either band, is too few."""
    enough, few = np.zeros((FEWEST_ROWS, 2)), np.zeros((FEWEST_ROWS - 1, 2))
    assert mean_difference(enough, few) is None
    assert mean_difference(few, enough) is None
    assert mean_difference(enough, enough) is not None
