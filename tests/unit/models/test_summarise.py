"""What each field of a summary holds, on records that can be added up by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailbudget.models.sample import KEEP, Keep
from tailbudget.models.sketch import bucket_index, stage_quantiles
from tailbudget.models.summarise import summarise
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.summary import Summary

SECOND_NS = 1_000_000_000
NAN = float("nan")
EU, US = (("region", "eu"),), (("region", "us"),)


def _columns(rows: list[dict[str, Any]], **changes: Any) -> Columns:
    def column(name: str, missing: Any, dtype: Any) -> Any:
        return np.array([row.get(name, missing) for row in rows], dtype)

    values: dict[str, Any] = {
        "service": "chat",
        "cohorts": (US, EU),
        "cohort": column("cohort", 0, np.int32),
        "id_hash": column("hash", 0, np.uint64),
        "ids": [row.get("id", f"r{i}") for i, row in enumerate(rows)],
        "ts_ns": column("at_s", 0, np.int64) * SECOND_NS,
        "outcome": column("outcome", Outcome.OK, np.int8),
        "total_ms": column("total", NAN, np.float64),
        "limit_ms": column("limit", NAN, np.float64),
        "weight": None,
        "stages": ("cache", "model"),
        "stage_ms": np.array([column("cache", NAN, float), column("model", NAN, float)]),
        "covariates": ("tokens",),
        "covariate": np.array([column("tokens", NAN, float)]),
        "offset": np.arange(len(rows)),
    }
    return Columns(**{**values, **changes})


def _summarise(rows: list[dict[str, Any]], keep: Keep = KEEP, **changes: Any) -> Summary:
    columns = _columns(rows, **changes)
    thresholds_ms = (100.0, 50.0, 100.0)
    return summarise(columns, pane_ns=10 * SECOND_NS, thresholds_ms=thresholds_ms, keep=keep)


def test_the_sample_of_few_cohorts_is_that_of_their_pane() -> None:
    """Records whose hash is among the smallest of the pane stay, whatever their cohort."""
    rows = [{"total": 1.0 + i, "hash": i, "cohort": int(i >= 8)} for i in range(40)]
    sample = _summarise(rows, keep=Keep(group=3, pane=12)).sample
    assert sample.tau.tolist() == [12, 12]
    assert sample.hash[sample.group == 1].tolist() == list(range(8))
    assert sample.hash[sample.group == 0].tolist() == [8, 9, 10, 11, 38, 39]


def test_groups_are_sorted_by_pane_and_cohort_text() -> None:
    """Groups come by pane start, then cohort; negative times round down."""
    rows = [{"at_s": s, "cohort": c, "total": 1.0} for s, c in ((12, 0), (19, 1), (-1, 0), (3, 1))]
    found = _summarise(rows)
    assert found.pane_ns.tolist() == [-10 * SECOND_NS, 0, 10 * SECOND_NS, 10 * SECOND_NS]
    assert found.cohorts == (US, EU, EU, US)
    assert found.requests.tolist() == [1, 1, 1, 1]


def test_counters_are_exact_at_the_threshold() -> None:
    """A request as slow as the threshold is good; a failure is bad for every threshold."""
    rows: list[dict[str, Any]] = [{"total": t} for t in (50.0, 50.0000001, 100.0, 101.0)]
    found = _summarise([*rows, {"outcome": Outcome.TIMEOUT, "limit": 1.0}])
    assert found.thresholds_ms == (50.0, 100.0)
    assert found.over.tolist() == [[4, 2]]
    assert (found.requests.tolist(), found.failed.tolist()) == ([5], [1])


def test_failures_feed_their_own_stage_alone() -> None:
    """The larger of total and limit is kept where either is known."""
    rows: list[dict[str, Any]] = [
        {"outcome": Outcome.TIMEOUT, "total": 5.0, "limit": 30.0, "model": 4.0},
        {"outcome": Outcome.ERROR, "total": 40.0, "limit": 30.0},
        {"outcome": Outcome.REJECTED},
    ]
    found = _summarise(rows)
    assert found.stages == ("total", "failed", "unattributed", "cache", "model")
    assert found.n.tolist() == [[0, 2, 0, 0, 0]]
    assert found.failed.tolist() == [3]
    assert (found.min_ms[0, 1], found.max_ms[0, 1]) == (30.0, 40.0)
    assert found.sum_ns[0, 1] == 70_000_000
    assert found.min_ms[0, 0] == np.inf
    assert found.max_ms[0, 0] == -np.inf
    assert len(found.profile.n) == len(found.sample.ids) == 0
    assert found.ledger == {(0, "accepted"): 3, (0, "failed"): 3}


def test_unattributed_is_what_the_present_stages_leave() -> None:
    """Exact in nanoseconds, never negative, an overlap is counted."""
    rows = [
        {"total": 100.0, "cache": 60.1, "model": 39.9},
        {"total": 10.0, "model": 4.0},
        {"total": 10.0, "cache": 8.0, "model": 4.0},
    ]
    found = _summarise(rows)
    assert found.n.tolist() == [[3, 0, 3, 2, 3]]
    assert found.sum_ns[0, 2] == 6_000_000
    assert found.min_ms[0, 2] == 0.0
    assert found.ledger == {(0, "accepted"): 3, (0, "overlap"): 1}


def test_clamped_values_are_counted_but_zero_is_not() -> None:
    """Values outside 2^-10 .. 2^20 ms count once each; a cache's exact 0 is a value."""
    rows = [
        {"total": 2.0**20, "cache": 0.0},
        {"total": 1.0, "cache": 1e-5, "model": 0.5},
        {"total": 2.0**20 - 1, "cache": 2.0**-10},
    ]
    found = _summarise(rows)
    assert found.ledger[0, "clamped"] == 2
    assert found.bucket[found.cell == 3].tolist() == [0]
    assert found.count[found.cell == 3].tolist() == [3]


def test_weights_count_requests_but_the_ledger_counts_rows() -> None:
    """A row of weight w adds like w rows to everything but the ledger and the sample."""
    rows: list[dict[str, Any]] = [
        {"total": 30.0, "model": 20.0, "tokens": 7.0, "hash": 1},
        {"total": 70.0, "model": 20.0, "tokens": 9.0, "hash": 2},
        {"outcome": Outcome.ERROR, "limit": 5.0, "hash": 3},
    ]
    weight = np.array([2, 3, 4])
    found = _summarise(rows, weight=weight)
    repeated = _summarise([row for row, w in zip(rows, weight, strict=True) for _ in range(w)])
    for name in ("requests", "failed", "over", "n", "sum_ns", "min_ms", "max_ms", "count", "cell"):
        np.testing.assert_array_equal(getattr(found, name), getattr(repeated, name), name)
    for name in ("n", "stage_ns", "covariate"):
        ours, theirs = getattr(found.profile, name), getattr(repeated.profile, name)
        np.testing.assert_array_equal(ours, theirs, name)
    for name in ("n", "mean", "product", "log_n", "log_mean", "log_product"):
        ours, theirs = getattr(found.moments, name), getattr(repeated.moments, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert found.ledger == {(0, "accepted"): 3, (0, "failed"): 1}
    assert found.sample.hash.tolist() == [1, 2]


def test_the_profile_sums_by_latency() -> None:
    """Each row of the profile holds the sums of one coarse bucket of the total."""
    rows = [
        {"total": 100.0, "model": 60.0, "tokens": 5.0},
        {"total": 101.0, "model": 61.0},
        {"total": 500.0, "cache": 1.0, "tokens": 8.0},
    ]
    profile = _summarise(rows).profile
    coarse = bucket_index(np.array([100.0, 500.0])) >> 3
    assert profile.bucket.tolist() == coarse.tolist()
    assert profile.n.tolist() == [2, 1]
    ms = (profile.stage_ns / 1e6).tolist()
    assert ms == [[201.0, 0.0, 80.0, 0.0, 121.0], [500.0, 0.0, 499.0, 1.0, 0.0]]
    assert profile.covariate.tolist() == [[5.0], [8.0]]


def test_the_sample_keeps_all_of_few_and_the_slowest_of_many() -> None:
    """Bottom hashes below tau, plus the slowest two; long ids are cut."""
    rows = [{"total": float(100 - i), "hash": 10 + i, "id": "x" * 70} for i in range(40)]
    few = _summarise(rows[:16]).sample
    assert few.tau.tolist() == [2**64 - 1]
    assert few.hash.tolist() == list(range(10, 26))
    assert few.slowest.tolist() == [True, True] + [False] * 14
    last = {"total": 500.0, "hash": 99, "model": 3.0, "tokens": 4.0}
    many = _summarise([*rows, last], keep=Keep(group=16, pane=0)).sample
    assert many.tau.tolist() == [26]
    assert many.hash.tolist() == [*range(10, 26), 99]
    assert many.hash[many.slowest].tolist() == [10, 99]
    assert {len(text) for text in many.ids[:-1]} == {64}
    np.testing.assert_array_equal(many.values[-1], [500.0, NAN, 497.0, NAN, 3.0, 4.0])


def test_quantiles_of_a_stage_over_all_groups() -> None:
    """Groups add up; an absent or empty stage has no quantile."""
    rows = [{"total": float(t), "cohort": t % 2} for t in range(1, 101)]
    found = _summarise(rows)
    quantiles = stage_quantiles(found, "total", [0.5, 0.95, 1.0])
    assert quantiles == pytest.approx([50, 95, 100], rel=1 / 128)
    assert stage_quantiles(found, "model", [0.5]) is None
    assert stage_quantiles(found, "no such stage", [0.5]) is None


def test_no_records_make_an_empty_summary() -> None:
    """Zero rows give zero groups, with the stages and thresholds kept."""
    found = _summarise([])
    assert len(found.pane_ns) == len(found.cell) == len(found.sample.ids) == 0
    assert found.over.shape == (0, 2)
    assert found.ledger == {}
