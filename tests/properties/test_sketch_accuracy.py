"""Quantiles of the sketch lie within 1/128 of the exact nearest rank."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tailbudget.models.sketch import LOWEST_MS, RELATIVE_ERROR, bucket_index, quantiles

QS = [Fraction(q, 1000) for q in (0, 1, 10, 250, 500, 750, 900, 950, 990, 999, 1000)]
DISTRIBUTIONS: dict[str, Callable[[Any, int], NDArray[np.float64]]] = {
    "lognormal": lambda r, n: r.lognormal(3, 1, n),
    "pareto": lambda r, n: r.pareto(1.1, n) + 0.01,
    "bimodal": lambda r, n: np.where(r.random(n) < 0.9, r.normal(10, 1, n), r.normal(900, 9, n)),
    "uniform": lambda r, n: r.uniform(0, 1000, n),
    "constant": lambda _, n: np.full(n, 123.456),
    "huge range": lambda r, n: 2.0 ** r.uniform(-9, 19.9, n),
    "mostly zero": lambda r, n: np.where(r.random(n) < 0.8, 0.0, r.lognormal(1, 1, n)),
}


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 20, 99, 100, 101, 1000, 5000])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_quantiles_are_within_the_guarantee(name: str, n: int) -> None:
    """Every quantile of every distribution and size is within 0.79 %, zeros within 2^-10 ms."""
    values = np.abs(DISTRIBUTIONS[name](np.random.default_rng(n), n))
    bucket, count = np.unique(bucket_index(values), return_counts=True)
    found = quantiles(bucket, count, QS, float(values.min()), float(values.max()))
    ranks = [max(-(-n * q.numerator // q.denominator), 1) for q in QS]
    exact = np.sort(values)[np.array(ranks) - 1]
    np.testing.assert_array_less(np.abs(found - exact), exact * RELATIVE_ERROR + 1.01 * LOWEST_MS)
    inside = exact >= LOWEST_MS
    assert (np.abs(found - exact)[inside] <= exact[inside] * RELATIVE_ERROR).all()
