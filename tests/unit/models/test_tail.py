"""The slow-minus-fast table and the tail driver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.tail import FAST, SLOW, slow_band, slow_fast
from tailbudget.models.window import Window
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import TailRow, TailTable

Build = Callable[..., Summary]


def rows(table: TailTable | None) -> dict[str, TailRow]:
    assert table is not None
    return {row.stage: row for row in table.rows}


def test_stage_that_grows_is_the_driver(summary_of: Build) -> None:
    """In 94 fast requests and 6 that wait 900 ms in a queue, the queue explains all of it."""
    total = [100.0] * 94 + [1_000.0] * 6
    got = slow_fast(
        summary_of(total, stages={"queue": [10.0] * 94 + [910.0] * 6, "model": [80.0] * 100})
    )
    assert got is not None
    assert got.driver is not None
    assert got.driver.stage == "queue"
    assert got.driver.delta_ms == pytest.approx(900)
    assert got.driver.tail_share_pct == pytest.approx(100)
    assert rows(got)["model"].delta_ms == pytest.approx(0)
    assert rows(got)["unattributed"].mean_fast_ms == pytest.approx(10)
    assert (got.fast_n, got.slow_n) == (11, 5)
    assert "failed" not in rows(got)
    assert "total" not in rows(got)


def test_time_that_no_stage_covers_can_be_the_driver(summary_of: Build) -> None:
    """When the stages stay level and the total grows, the driver is unattributed."""
    got = slow_fast(
        summary_of([100.0] * 90 + [800.0] * 10, stages={"model": [90.0] * 100}), ("p95", "max")
    )
    assert got is not None
    assert got.driver is not None
    assert got.driver.stage == "unattributed"
    assert got.driver.mean_slow_ms == pytest.approx(710)


def test_band_edges_take_a_fraction_of_a_bucket(summary_of: Build) -> None:
    """A band inside one bucket has the bucket's mean; one over two weighs them by rank."""
    summary = summary_of(
        [100.0] * 50 + [1_000.0] * 50, stages={"model": [40.0] * 50 + [600.0] * 50}
    )
    inside, across = slow_fast(summary, ("p95", "p99")), slow_fast(summary, ("p46", "p55"))
    assert rows(inside)["model"].mean_slow_ms == pytest.approx(600)
    assert across is not None
    assert across.slow_n == 10
    assert rows(across)["model"].mean_slow_ms == pytest.approx((5 * 40 + 5 * 600) / 10)


def test_stage_missing_from_requests_adds_nothing_there(summary_of: Build) -> None:
    """A fetch in a tenth of the slow requests has a tenth of its mean, so that deltas add up."""
    fetch = [np.nan] * 99 + [500.0]
    got = slow_fast(
        summary_of([100.0] * 90 + [600.0] * 10, stages={"fetch": fetch}), ("p91", "max")
    )
    assert rows(got)["fetch"].mean_slow_ms == pytest.approx(50)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 300))
def test_deltas_add_up_to_the_total(summary_of: Build, seed: int, n: int) -> None:
    """When stages do not overlap, their deltas and the unattributed one make up the total's."""
    rng = np.random.default_rng(seed)
    stages = {name: rng.lognormal(3, 1.5, n) for name in ("model", "queue")}
    total = stages["model"] + stages["queue"] + rng.exponential(20, n)
    got = slow_fast(summary_of(total, stages=stages), SLOW, FAST)
    assert got is not None
    assert sum(row.delta_ms for row in got.rows) == pytest.approx(got.total.delta_ms, abs=1e-4)
    assert all(row.tail_share_pct is None or row.tail_share_pct <= 100 for row in got.rows)


def test_profile_is_near_the_raw_rows(summary_of: Build) -> None:
    """On 5,000 requests the table from sums is within 5 % of the same bands cut by sorting."""
    rng = np.random.default_rng(7)
    queue, model = rng.lognormal(3, 1.2, 5_000), rng.lognormal(5, 0.2, 5_000)
    total = queue + model
    got = rows(slow_fast(summary_of(total, stages={"queue": queue, "model": model})))
    order = np.argsort(total)
    slow, fast = order[4_749:4_950], order[1_999:2_500]
    for name, values in (("queue", queue), ("model", model)):
        assert got[name].mean_slow_ms == pytest.approx(values[slow].mean(), rel=0.05)
        assert got[name].mean_fast_ms == pytest.approx(values[fast].mean(), rel=0.05)


def test_thresholds_move_the_slow_band(summary_of: Build) -> None:
    """p99 means the slowest hundredth; milliseconds mean all that is slower than that."""
    total = [100.0] * 900 + [400.0] * 80 + [2_000.0] * 20
    summary = summary_of(total, stages={"model": total}, thresholds_ms=[300.0])
    assert slow_band("p95") == ("p95", "p99")
    assert rows(slow_fast(summary, slow_band("p99")))["model"].mean_slow_ms == pytest.approx(2_000)
    over = slow_fast(summary, slow_band(300.0))
    assert over is not None
    assert over.slow_n == 100
    assert rows(over)["model"].mean_slow_ms == pytest.approx((80 * 400 + 20 * 2_000) / 100)


def test_empty_bands_have_no_table(summary_of: Build) -> None:
    """Without successes, or with nothing slower than the threshold, there is nothing to say."""
    assert slow_fast(Window(10, 10).total()) is None
    assert slow_fast(summary_of([], failed=[30_000.0] * 5)) is None
    assert slow_fast(summary_of([100.0] * 50), slow_band(300.0)) is None


def test_level_requests_have_no_driver(summary_of: Build) -> None:
    """When slow requests are no slower than fast ones, no stage drives the tail."""
    got = slow_fast(summary_of([100.0] * 50, stages={"model": [90.0] * 50}))
    assert got is not None
    assert got.driver is None
    assert rows(got)["model"].tail_share_pct is None


def test_unknown_percentile_is_refused(summary_of: Build) -> None:
    """A band that names no percentile is an error that repeats what was given."""
    with pytest.raises(ValueError, match="q95"):
        slow_fast(summary_of([100.0] * 50), slow_band("q95"))
