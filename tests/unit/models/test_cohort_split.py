"""Which cohorts are slow, against all requests."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tailbudget.models.cohort_split import cohort_split, other_share_pct
from tailbudget.models.window import Window
from tailbudget.schemas.cohorts import OTHER, Cohort
from tailbudget.schemas.sections import CohortRow

Build = Callable[..., Window]

CHAT_EU: Cohort = (("route", "chat"), ("region", "eu"))
CHAT_US: Cohort = (("route", "chat"), ("region", "us"))
EMBED_EU: Cohort = (("route", "embed"), ("region", "eu"))


def split(window: Window) -> dict[tuple[str, str], CohortRow]:
    return {(row.dimension, row.value): row for row in cohort_split(window.cohorts())}


def test_slow_cohort_is_over_represented(window_of: Build) -> None:
    """One cohort in ten that is always slow has a tenth of the traffic and all slow requests."""
    cohorts = [CHAT_EU] * 9_000 + [CHAT_US] * 1_000
    rows = split(window_of([100.0] * 9_000 + [900.0] * 1_000, cohorts=cohorts))
    us = rows["region", "us"]
    assert us.n == 1_000
    assert us.traffic_share_pct == pytest.approx(10)
    assert us.slow_share_pct == pytest.approx(100)
    assert us.p99_ms == 900.0
    assert us.delta_ms == pytest.approx(0, abs=8)
    assert rows["region", "eu"].p99_ms == 100.0
    assert rows["region", "eu"].delta_ms == pytest.approx(-800, abs=8)
    assert rows["region", "eu"].slow_share_pct == 0
    assert next(iter(rows)) == ("cohort", "route=chat,region=us")


def test_values_gather_the_cohorts_that_have_them(window_of: Build) -> None:
    """A dimension's value sums over the other dimensions, and whole cohorts stand apart."""
    cohorts = [CHAT_EU] * 30 + [CHAT_US] * 20 + [EMBED_EU] * 50
    rows = split(window_of([100.0] * 100, cohorts=cohorts))
    assert {name: row.n for name, row in rows.items()} == {
        ("route", "chat"): 50,
        ("route", "embed"): 50,
        ("region", "eu"): 80,
        ("region", "us"): 20,
        ("cohort", "route=chat,region=eu"): 30,
        ("cohort", "route=chat,region=us"): 20,
        ("cohort", "route=embed,region=eu"): 50,
    }


def test_small_cohorts_are_listed_without_a_p99(window_of: Build) -> None:
    """Below 1,000 successes a p99 is unknown, not 0; the shares still stand."""
    cohorts = [CHAT_EU] * 2_000 + [CHAT_US] * 999
    rows = split(window_of([100.0] * 2_999, cohorts=cohorts))
    assert rows["region", "us"].p99_ms is None
    assert rows["region", "us"].delta_ms is None
    assert rows["region", "us"].traffic_share_pct == pytest.approx(100 * 999 / 2_999)
    assert rows["region", "eu"].p99_ms == 100.0


def test_shares_agree_with_sorted_requests(window_of: Build) -> None:
    """Shares add up to 100 % and are those of the raw rows above the p95, within a bucket's."""
    rng = np.random.default_rng(3)
    names: list[Cohort] = [(("route", route),) for route in "abcd"]
    of = rng.integers(0, 4, 4_000)
    totals = rng.lognormal(5, 0.5, 4_000) * (1 + of)
    rows = split(window_of(totals, cohorts=[names[k] for k in of]))
    slow = of[np.argsort(totals)[3_800:]]
    assert list(rows) == [("route", route) for route in "dcba"]
    assert sum(row.slow_share_pct or 0 for row in rows.values()) == pytest.approx(100)
    assert sum(row.traffic_share_pct or 0 for row in rows.values()) == pytest.approx(100)
    for k, route in enumerate("abcd"):
        assert rows["route", route].slow_share_pct == pytest.approx(100 * (slow == k).mean(), abs=2)
        ordered = np.sort(totals[of == k])
        want = ordered[math.ceil(0.99 * len(ordered)) - 1]
        if len(ordered) >= 1_000:
            assert rows["route", route].p99_ms == pytest.approx(want, rel=1 / 128)


@pytest.mark.parametrize("failed", [2, 5, 20])
def test_failures_are_the_slowest_requests(window_of: Build, failed: int) -> None:
    """A cohort that only fails has its part of the slow requests, more or fewer than 5 %."""
    cohorts = [CHAT_EU] * (100 - failed) + [CHAT_US] * failed
    totals = [float(k) for k in range(1, 101 - failed)]
    rows = split(window_of(totals, failed=[30_000.0] * failed, cohorts=cohorts))
    assert rows["region", "us"].slow_share_pct == pytest.approx(min(100.0, 100 * failed / 5))
    assert rows["region", "us"].n == failed
    assert rows["region", "us"].p99_ms is None


def test_few_requests_have_none_above_their_p95(window_of: Build) -> None:
    """Of ten requests the p95 is the slowest, so that no cohort has a share of the slower ones."""
    window = window_of([100.0] * 9, failed=[30_000.0], cohorts=[CHAT_EU] * 9 + [CHAT_US])
    assert {row.slow_share_pct for row in split(window).values()} == {None}


def test_folded_cohorts_are_named(window_of: Build) -> None:
    """Cohorts beyond the limit make a row of their own, and their share is known."""
    window = window_of([100.0] * 100, cohorts=[CHAT_EU] * 75 + [OTHER] * 25)
    assert split(window)["(other)", "(other)"].n == 25
    assert other_share_pct(window.cohorts()) == pytest.approx(25)
    assert other_share_pct(window_of([100.0], cohorts=[CHAT_EU]).cohorts()) is None


def test_nothing_splits_into_nothing(window_of: Build) -> None:
    """No requests, and requests without dimensions, have no rows."""
    assert cohort_split(Window(10, 10).cohorts()) == ()
    assert cohort_split(window_of([100.0] * 30).cohorts()) == ()
