"""Percentiles of few requests are exact; of many, they are the sketch's."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from gathered import gathered

from tailbudget.models.ranks import ranks
from tailbudget.models.sketch import RELATIVE_ERROR

QUANTILES = tuple(Fraction(text) for text in ("0.5", "0.95", "0.99"))


def latencies(count: int) -> np.ndarray:
    """Return latencies of no round bucket, in milliseconds."""
    return np.random.default_rng(7).lognormal(5.0, 0.7, count)


def nearest_rank_ms(values: np.ndarray, quantile: Fraction) -> float:
    """Return the nearest rank of the values themselves."""
    return float(np.quantile(values, float(quantile), method="inverted_cdf"))


@pytest.mark.parametrize("count", [1, 5, 100, 2_000])
def test_of_few_requests_the_values_themselves(count: int) -> None:
    """While the sample has every request, each percentile is one of them."""
    total_ms = latencies(count)
    found = ranks(gathered({"total_ms": total_ms, "run_ms": total_ms / 2}).total)
    for quantile in QUANTILES:
        # Time is kept to the nanosecond.
        assert found.quantile_ms(quantile) == pytest.approx(
            nearest_rank_ms(total_ms, quantile), abs=2e-6
        )
    limit_ms = float(np.median(total_ms)) + 0.01
    assert found.slower_than(limit_ms) == int((total_ms > limit_ms).sum())


def test_of_many_requests_the_sketch() -> None:
    """Of more than the sample holds, no percentile is further off than the sketch may be."""
    total_ms = latencies(5_000)
    found = ranks(gathered({"total_ms": total_ms}).total)
    assert found.exact_ms is None
    for quantile in QUANTILES:
        assert found.quantile_ms(quantile) == pytest.approx(
            nearest_rank_ms(total_ms, quantile), rel=RELATIVE_ERROR
        )


def test_failures_have_no_rank() -> None:
    """A failed request is not among the values, and does not make them inexact."""
    total_ms = latencies(60)
    status = ["error" if i % 3 == 0 else "ok" for i in range(60)]
    found = ranks(gathered({"total_ms": total_ms, "status": status}).total)
    ok = total_ms[np.arange(60) % 3 != 0]
    assert found.n == 40
    assert found.quantile_ms(QUANTILES[0]) == pytest.approx(
        nearest_rank_ms(ok, QUANTILES[0]), abs=2e-6
    )


def test_weighted_requests_are_judged_by_the_sketch() -> None:
    """A record that stands for ten is one sampled value: the sample does not have every one."""
    total_ms = latencies(30)
    found = ranks(gathered({"total_ms": total_ms, "weight": [10] * 30}).total)
    assert (found.n, found.exact_ms) == (300, None)
