"""Buckets and ranks at their edges."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tailbudget.models.sketch import (
    BUCKETS,
    HIGHEST_MS,
    LOWEST_MS,
    bucket_index,
    nearest_rank,
    quantiles,
    representative,
)


def test_the_ends_of_the_range() -> None:
    """The range is [2^-10, 2^20); what lies outside goes to the end buckets."""
    values = np.array([0.0, -1.0, LOWEST_MS / 2, LOWEST_MS, 1.0, HIGHEST_MS - 1, HIGHEST_MS, 1e300])
    assert bucket_index(values).tolist() == [0, 0, 0, 0, 640, *[BUCKETS - 1] * 3]


def test_representatives_are_in_their_buckets() -> None:
    """The middle of each bucket falls into that bucket."""
    buckets = np.arange(BUCKETS)
    assert bucket_index(representative(buckets)).tolist() == buckets.tolist()


@pytest.mark.parametrize(
    ("n", "q", "rank"),
    [
        (100, 0.95, 95),
        (20, 0.95, 19),
        (100, 0.99, 99),
        (1000, Fraction(999, 1000), 999),
        (10, 0.3, 3),
        (3, 0.5, 2),
        (7, 0.0, 1),
        (7, 1.0, 7),
        (10**15, 0.99, 99 * 10**13),
    ],
)
def test_ranks_are_exact(n: int, q: Fraction | float, rank: int) -> None:
    """N q is computed in whole numbers: 20 x 0.95 is 19, not 19.000000000000002."""
    assert nearest_rank(n, q) == rank


def test_quantiles_stay_within_the_extremes() -> None:
    """A bucket's middle beyond the largest or smallest value gives that value."""
    bucket, count = np.array([640]), np.array([5])
    assert quantiles(bucket, count, [0.5], 1.0, 1.001).tolist() == [1.001]
    assert quantiles(bucket, count, [0.5], 1.01, 1.015).tolist() == [1.01]
