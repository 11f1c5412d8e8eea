"""Percentiles against their targets: failures, too few requests, the edge of a target."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.ranks import ranks
from tailbudget.models.snapshot import snapshot, verdict
from tailbudget.models.window import Window
from tailbudget.schemas.slo import QUANTILES, SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import Percentile, Verdict, leading

Build = Callable[..., Summary]


def judge(build: Build, total_ms: object, slo: SloTarget | None, failed: object = ()) -> Rows:
    thresholds = slo.thresholds_ms() if slo else ()
    return Rows(snapshot(build(total_ms, failed=failed, thresholds_ms=thresholds), slo))


class Rows:
    """The rows of a snapshot by percentile and basis."""

    def __init__(self, rows: tuple[Percentile, ...]) -> None:
        self.rows = {(row.percentile, row.basis): row for row in rows}
        self.verdict = verdict(rows)

    def __call__(self, percentile: str, basis: str = "all") -> Percentile:
        return self.rows[percentile, basis]


def test_timeouts_are_slower_than_everything(summary_of: Build) -> None:
    """Ten timeouts among a hundred put the p95 over their limit, and that is a breach."""
    got = judge(summary_of, [100.0] * 90, SloTarget(p95_ms=500), [30_000.0] * 10)
    assert got("p95").measured_ms is None
    assert got("p95").headroom_ms is None
    assert got("p95").note == "over 30,000 ms (timeout)"
    assert got("p95").status is Verdict.BREACH
    assert got("p95").over == 10
    assert got("max").measured_ms is None
    assert got("p95", "success").measured_ms == 100.0
    assert got.verdict is Verdict.BREACH


def test_shortest_limit_is_named(summary_of: Build) -> None:
    """Of two limits the smaller one is what the percentile is surely over."""
    got = judge(summary_of, [100.0] * 80, None, [30_000.0, 20_000.0] * 10)
    assert got("p95").note == "over 20,000 ms (timeout); insufficient (n=100, needs 200)"


def test_failures_of_unknown_limit_are_called_failed(summary_of: Build) -> None:
    """One failure without a limit leaves nothing that the percentile is surely over."""
    limits = [30_000.0] * 20 + [math.nan]
    got = judge(summary_of, [100.0] * 179, SloTarget(p95_ms=500), limits)
    assert got("p95").note == "failed"
    assert got("p95").status is Verdict.BREACH


def test_fast_failures_do_not_hide_slow_successes(summary_of: Build) -> None:
    """45 answers at 900 ms and 55 rejections at 3 ms breach a p50 of 500 ms on both bases."""
    got = judge(summary_of, [900.0] * 45, SloTarget(p50_ms=500), [3.0] * 55)
    assert got("p50").note == "failed"
    assert got("p50").status is Verdict.BREACH
    assert got("p50", "success").measured_ms == 900.0
    assert got("p50", "success").headroom_ms == -400.0
    assert got("p50", "success").status is Verdict.BREACH


def test_five_requests_are_insufficient(summary_of: Build) -> None:
    """The p95 of five requests is their maximum: neither a breach nor a pass."""
    got = judge(summary_of, [120.0, 130.0, 140.0, 150.0, 501.0], SloTarget(p95_ms=500))
    assert got("p95").measured_ms == 501.0
    assert got("p95").status is Verdict.INSUFFICIENT
    assert got("p95").note == "insufficient (n=5; this p95 is the maximum)"
    assert got("p50").note == "insufficient (n=5, needs 20)"
    assert got.verdict is Verdict.INSUFFICIENT


def test_one_outlier_is_the_maximum_and_no_percentile(summary_of: Build) -> None:
    """The nearest-rank p99 of 99 fast requests and one of hours is fast; the maximum says so."""
    got = judge(summary_of, [1.0] * 99 + [1e7], None)
    assert got("p99").measured_ms == pytest.approx(1.0, rel=1 / 128)
    assert got("max").measured_ms == 1e7
    assert got("max").n == 100


def test_few_requests_show_a_breach_that_chance_cannot(summary_of: Build) -> None:
    """Forty slow requests of a hundred are a p99 breach; two of a hundred are not yet."""
    slo = SloTarget(p99_ms=500)
    assert judge(summary_of, [100.0] * 60 + [900.0] * 40, slo)("p99").status is Verdict.BREACH
    assert judge(summary_of, [100.0] * 98 + [900.0] * 2, slo)("p99").status is Verdict.INSUFFICIENT


def test_one_bad_request_is_never_a_breach(summary_of: Build) -> None:
    """A single slow request among three is an accident, however rare the p99 allows it."""
    got = judge(summary_of, [100.0] * 2 + [900.0], SloTarget(p99_ms=500))
    assert got("p99").status is Verdict.INSUFFICIENT


def test_no_requests_are_no_data() -> None:
    """An empty window has no percentile and says no_data, not ok."""
    rows = snapshot(Window(10, 10).total(), SloTarget(p99_ms=500))
    assert verdict(rows) is Verdict.NO_DATA
    assert {row.status for row in rows} == {Verdict.NO_DATA}
    assert {row.measured_ms for row in rows} == {None}
    assert rows[0].note == "no requests"


def test_a_few_failures_alone_are_no_measurement(summary_of: Build) -> None:
    """Eight failed requests measure nothing; twenty breach a p50."""
    slo = SloTarget(p50_ms=500)
    few, many = judge(summary_of, [], slo, [0.0] * 8), judge(summary_of, [], slo, [0.0] * 20)
    assert few.verdict is Verdict.NO_DATA
    assert few("p50").note == "no measurement: all 8 requests failed; failed"
    assert many.verdict is Verdict.BREACH


@pytest.mark.parametrize(("over", "status"), [(10, Verdict.AT_RISK), (11, Verdict.BREACH)])
def test_exact_counts_decide_within_a_bucket(summary_of: Build, over: int, status: Verdict) -> None:
    """499.9 and 500.1 ms share a bucket; exactly more than 1 % over 500 ms is a breach."""
    got = judge(summary_of, [499.9] * (1000 - over) + [500.1] * over, SloTarget(p99_ms=500))
    measured = got("p99").measured_ms
    assert measured is not None
    assert got("p99").status is status
    assert (measured > 500) is (status is Verdict.BREACH)


@pytest.mark.parametrize(("ms", "status"), [(400.0, Verdict.OK), (470.0, Verdict.AT_RISK)])
def test_last_tenth_of_a_target_is_at_risk(summary_of: Build, ms: float, status: Verdict) -> None:
    """Above 90 % of the target a percentile is at risk."""
    assert judge(summary_of, [ms] * 20, SloTarget(p50_ms=500)).verdict is status


def test_worst_percentile_is_the_verdict(summary_of: Build) -> None:
    """A breach of the p50 shows through a p99 that too few requests leave open."""
    got = judge(summary_of, [900.0] * 30, SloTarget(p50_ms=500, p99_ms=2_000))
    assert got("p99").status is Verdict.INSUFFICIENT
    assert got.verdict is Verdict.BREACH


def test_without_a_target_nothing_is_judged(summary_of: Build) -> None:
    """Enough requests without a promise have a value, no status, and no green verdict."""
    got = judge(summary_of, [100.0] * 2_000, None)
    assert got("p99").measured_ms == 100.0
    assert got("p99").status is None
    assert got.verdict is Verdict.INSUFFICIENT


def test_uncounted_target_is_judged_by_the_sketch(summary_of: Build) -> None:
    """A target set after the requests were counted is judged, and the row says by what."""
    rows = snapshot(summary_of([100.0] * 900 + [900.0] * 1100), SloTarget(p50_ms=500))
    assert rows[0].status is Verdict.BREACH
    assert rows[0].over == 1100
    assert rows[0].note == "judged by the sketch: this target was not counted"


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 400),
    failed=st.integers(0, 60),
    slo_ms=st.floats(20, 2_000),
)
def test_rows_agree_with_sorted_requests(
    summary_of: Build, seed: int, n: int, failed: int, slo_ms: float
) -> None:
    """Each row is within the sketch's bound of the nearest rank, and on its side of the target."""
    totals = np.random.default_rng(seed).lognormal(5, 1, n)
    got = judge(summary_of, totals, SloTarget(slo_ms, slo_ms, slo_ms), [9e5] * failed)
    for basis, extra in (("all", failed), ("success", 0)):
        ordered = [*np.sort(totals).tolist(), *[math.inf] * extra]
        for name, q in QUANTILES.items():
            row, want = got(name, basis), ordered[math.ceil(len(ordered) * q) - 1]
            assert row.over == sum(value > slo_ms for value in ordered)
            if want == math.inf:
                assert row.measured_ms is None
            else:
                assert row.measured_ms == pytest.approx(want, rel=1 / 128)
                assert row.headroom_ms is not None
                assert (row.headroom_ms < 0) is (want > slo_ms)
            if row.status in (Verdict.OK, Verdict.AT_RISK):
                assert want <= slo_ms
            if row.status is Verdict.BREACH:
                assert want > slo_ms


def test_ranks_want_one_group(summary_of: Build) -> None:
    """A summary of two panes has no single order of requests and is refused."""
    with pytest.raises(ValueError, match="one group, not of 2"):
        ranks(summary_of([1.0, 2.0], ts_ns=[0, 10_000_000_000]))


def test_scheduled_requests_are_judged_from_their_schedule(summary_of: Build) -> None:
    """The verdict counts the wait; what was logged is the second basis, of those that logged it."""
    slo = SloTarget(p50_ms=200)
    logged = [100.0] * 60 + [math.nan] * 20
    total_ms = [900.0] * 60 + [100.0] * 20
    build = summary_of(total_ms, stages={"logged": logged}, thresholds_ms=slo.thresholds_ms())
    got = Rows(snapshot(build, slo))
    assert {basis for _, basis in got.rows} == {"scheduled", "success"}
    assert got("p50", "scheduled").over == 60
    assert got("p50", "scheduled").status is Verdict.BREACH
    assert got("p50", "success").measured_ms == 100.0
    assert got("p50", "success").n == 60
    assert got.verdict is Verdict.BREACH
    assert leading(got.rows.values())["p50"].basis == "scheduled"


def test_failures_of_scheduled_requests_count(summary_of: Build) -> None:
    """A timeout is slower than every schedule."""
    built = summary_of([900.0] * 90, stages={"logged": [100.0] * 90}, failed=[30_000.0] * 10)
    got = Rows(snapshot(built, None))
    assert got("p95", "scheduled").note.startswith("over 30,000 ms (timeout)")
    assert got("p95", "success").measured_ms == 100.0
