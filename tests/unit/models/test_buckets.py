"""Percentiles of histograms are bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.models.buckets import Buckets
from tailbudget.streams.audit_log.prometheus import histograms

CASE_16 = Buckets((5.0, 10.0, 25.0, math.inf), (191_340, 191_360, 191_367, 191_367), 42_600.0)


def test_case_16() -> None:
    """Percentiles lie in (0, 5], the mean is exact, and an SLO of 3 ms is undecidable."""
    assert CASE_16.bounds_ms(0.5) == (0, 5)
    assert CASE_16.bounds_ms(0.99) == (0, 5)
    assert CASE_16.mean_ms == pytest.approx(0.2226, abs=1e-4)
    assert CASE_16.decide(0.99, 3) == "undecidable"
    assert CASE_16.decide(0.99, 5) == "ok"
    assert CASE_16.decide(0.99999, 5) == "breach"


def test_nothing_counted_decides_nothing() -> None:
    """Without a request there is no percentile, no mean and no verdict."""
    empty = Buckets((5.0, math.inf), (0, 0), 0.0)
    assert (empty.bounds_ms(0.5), empty.mean_ms) == (None, None)
    assert empty.decide(0.5, 1) == "undecidable"


@given(
    st.lists(st.floats(0.01, 100), min_size=1, max_size=60),
    st.sets(st.integers(1, 90), min_size=1, max_size=8),
    st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]),
    st.floats(0.5, 100),
)
def test_bounds_hold_the_percentile(
    values: list[float], edges: set[int], q: float, target: float
) -> None:
    """The value of nearest rank lies within, and a decision is never wrong."""
    upper = (*sorted(float(edge) for edge in edges), math.inf)
    count = tuple(sum(value <= edge for value in values) for edge in upper)
    buckets = Buckets(upper, count, sum(values))
    true = sorted(values)[max(math.ceil(q * len(values)), 1) - 1]
    low, high = buckets.bounds_ms(q) or (math.nan, math.nan)
    assert low < true <= high or (low == 0 and true <= high)
    assert buckets.decide(q, target) in {"undecidable", "ok" if true <= target else "breach"}
    assert buckets.mean_ms == pytest.approx(np.mean(values))


@pytest.mark.parametrize(
    ("upper", "count"),
    [((), ()), ((5.0,), (1,)), ((5.0, math.inf), (2, 1)), ((5.0, 5.0, math.inf), (1, 1, 1))],
)
def test_what_is_no_histogram_is_refused(upper: tuple[float, ...], count: tuple[int, ...]) -> None:
    """Buckets ascend to infinity, and their counts never fall."""
    with pytest.raises(ValueError, match="buckets"):
        Buckets(upper, count, None)


def test_a_scrape() -> None:
    """Seconds become milliseconds, series are told apart by their labels."""
    lines = [
        "# TYPE vllm:e2e_request_latency_seconds histogram",
        'vllm:e2e_request_latency_seconds_bucket{le="0.5",model="a"} 3',
        'vllm:e2e_request_latency_seconds_bucket{le="+Inf",model="a"} 4',
        'vllm:e2e_request_latency_seconds_sum{model="a"} 2.5',
        'vllm:e2e_request_latency_seconds_count{model="a"} 4',
        'vllm:e2e_request_latency_seconds_bucket{le="0.5",model="b"} 1',
        'vllm:e2e_request_latency_seconds_bucket{le="+Inf",model="b"} 1',
        "# TYPE other counter",
        "other_total 5",
    ]
    one, other = histograms("\n".join([*lines, ""]))
    assert (one.name, one.labels) == ("vllm:e2e_request_latency_seconds", (("model", "a"),))
    assert one.buckets == Buckets((500.0, math.inf), (3, 4), 2_500.0)
    assert other.buckets.sum_ms is None
    assert one.unit == "seconds"
