"""Which sampled requests lie in a band."""

from __future__ import annotations

import numpy as np
from gathered import gathered

from tailbudget.models.sampled import in_band, sampled
from tailbudget.schemas.summary import TOTAL


def test_band_within_one_bucket_has_its_requests() -> None:
    """A band narrower than a sketch bucket is not empty: all requests of its bucket are in it."""
    totals = [100.0] * 900 + [1_010.0 + k / 50 for k in range(100)]
    total = gathered({"total_ms": totals}).total
    rows = sampled(total)
    inside = in_band(total, rows, ("p95", "p99"))
    assert inside.sum() == 100
    assert rows.stage(TOTAL)[inside].min() == 1_010.0


def test_milliseconds_are_exact_edges() -> None:
    """From 300 ms on means slower than 300 ms, though 299 and 301 share a bucket."""
    total = gathered({"total_ms": [299.0] * 50 + [300.0] * 50 + [301.0] * 50}).total
    rows = sampled(total)
    assert set(rows.stage(TOTAL)[in_band(total, rows, (300.0, "max"))]) == {301.0}


def test_empty_bands_have_no_requests() -> None:
    """Nothing is slower than the slowest."""
    total = gathered({"total_ms": np.arange(1.0, 101.0)}).total
    assert not in_band(total, sampled(total), (1_000.0, "max")).any()
