"""Cohorts by value, by pair and whole, against the raw rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from folded import fold_cohorts
from gathered import gathered

from tailbudget.models.cohort_table import MOST_PAIRS, MOST_VALUES, cohort_table
from tailbudget.models.select import empty
from tailbudget.schemas.sections import CohortRow
from tailbudget.schemas.summary import Summary

N = 6_000


def cohorts_of(total_ms: Any, **dims: Any) -> Summary:
    columns = {"total_ms": total_ms} | dims
    return gathered(columns, cohort_dims=tuple(dims), every_s=0.01).cohorts


def rows_of(cohorts: Summary) -> dict[tuple[str, str], CohortRow]:
    return {(row.dimension, row.value): row for row in cohort_table(cohorts)}


def p99(values: Any) -> float:
    return float(np.sort(values)[math.ceil(0.99 * len(values)) - 1])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(13)


def test_values_pairs_and_wholes_are_those_of_the_raw_rows(rng: np.random.Generator) -> None:
    """P99 with and without each part is that of sorting the rows, within a sketch bucket."""
    route = rng.choice(["bulk", "chat", "embed"], N, p=[0.2, 0.4, 0.4])
    region, tier = rng.choice(["eu", "us"], N), rng.choice(["free", "paid"], N)
    totals = rng.lognormal(4, 0.6, N) * np.where((route == "bulk") & (region == "eu"), 6, 1)
    rows = rows_of(cohorts_of(totals, route=route, region=region, tier=tier))
    inside = {
        ("route", "bulk"): route == "bulk",
        ("route+region", "bulk+eu"): (route == "bulk") & (region == "eu"),
        ("region+tier", "us+paid"): (region == "us") & (tier == "paid"),
        ("cohort", "route=chat,region=us,tier=free"): (
            (route == "chat") & (region == "us") & (tier == "free")
        ),
    }
    for key, mine in inside.items():
        row = rows[key]
        assert row.n == mine.sum()
        assert row.p99_without_ms == pytest.approx(p99(totals[~mine]), rel=1 / 128)
        assert row.traffic_share_pct == pytest.approx(100 * mine.mean())
        if mine.sum() >= 1_000:
            assert row.p99_ms == pytest.approx(p99(totals[mine]), rel=1 / 128)
            assert row.delta_ms == pytest.approx(p99(totals[mine]) - p99(totals), abs=20)
        else:
            assert (row.p99_ms, row.delta_ms) == (None, None)
    first = cohort_table(cohorts_of(totals, route=route, region=region, tier=tier))[0]
    assert (first.dimension, first.value) == ("route+region", "bulk+eu")


def test_of_two_dimensions_the_pair_is_the_whole_cohort() -> None:
    """A cohort of two dimensions is listed once, as a pair."""
    rows = rows_of(
        cohorts_of([100.0] * 40, route=["a", "b"] * 20, region=["eu", "eu", "us", "us"] * 10)
    )
    assert {dimension for dimension, _ in rows} == {"route", "region", "route+region"}
    assert rows["route+region", "a+us"].n == 10


def test_pairs_that_say_nothing_more_are_left_out() -> None:
    """A route that is in one region alone is not listed again with it; the value stands first."""
    rows = cohort_table(
        cohorts_of(
            [100.0] * 90 + [900.0] * 10,
            route=["chat"] * 90 + ["bulk"] * 10,
            region=["eu", "us"] * 45 + ["us"] * 10,
        )
    )
    names = [(row.dimension, row.value) for row in rows]
    assert names[0] == ("route", "bulk")
    assert ("route+region", "bulk+us") not in names
    assert ("route+region", "chat+us") in names


def test_few_others_have_no_p99_without() -> None:
    """Without the cohort that is nearly everything, 500 requests are too few for a p99."""
    rows = rows_of(cohorts_of([100.0] * 2_500, route=["a"] * 2_000 + ["b"] * 500))
    assert rows["route", "a"].p99_without_ms is None
    assert rows["route", "b"].p99_without_ms == 100.0
    assert rows["route", "b"].p99_ms is None
    alone = rows_of(cohorts_of([100.0] * 2_000, route=["a"] * 2_000))
    assert alone["route", "a"].p99_without_ms is None


def test_slowest_of_the_others_bounds_their_p99() -> None:
    """The p99 without a cohort is no higher than the slowest request of the others."""
    totals = [100.0] * 1_500 + [100.3] * 500
    rows = rows_of(cohorts_of(totals, route=["a"] * 1_500 + ["b"] * 500))
    assert rows["route", "b"].p99_without_ms == 100.0


def test_rows_are_bounded_and_the_slowest_are_kept(rng: np.random.Generator) -> None:
    """Of 120 customers and their pairs with regions the most over-represented have rows."""
    customer = np.array([f"c{k:03}" for k in rng.integers(0, 120, N)])
    region = rng.choice(["eu", "us", "ap"], N)
    totals = np.where(customer == "c077", 900.0, 100.0) + rng.random(N)
    rows = cohort_table(cohorts_of(totals, customer=customer, region=region))
    sizes = {name: sum(row.dimension == name for row in rows) for name in ("customer", "region")}
    assert sizes == {"customer": MOST_VALUES, "region": 3}
    assert sum(row.dimension == "customer+region" for row in rows) == MOST_PAIRS
    assert (rows[0].dimension, rows[0].value) == ("customer", "c077")


def test_folded_cohorts_are_a_row_of_their_own(rng: np.random.Generator) -> None:
    """What is beyond the limit of cohorts is "(other)", counted in all and in no pair."""
    names = np.array([f"r{k}" for k in rng.integers(0, 5, N)])
    cohorts = cohorts_of(rng.lognormal(4, 0.5, N), route=names, region=["eu", "us"] * (N // 2))
    keep = {cohort for cohort in cohorts.cohorts if cohort[0][1] == "r0"}
    rows = rows_of(fold_cohorts(cohorts, keep))
    assert rows["(other)", "(other)"].n == (names != "r0").sum()
    assert rows["route", "r0"].n == (names == "r0").sum()
    assert [key for key in rows if "(other)" in key[1]] == [("(other)", "(other)")]
    assert rows["(other)", "(other)"].p99_without_ms is not None


def test_failures_count_as_slow_and_not_as_fast(rng: np.random.Generator) -> None:
    """A route whose requests all fail is over-represented and has no p99."""
    status = ["ok"] * 5_700 + ["timeout"] * 300
    totals = [*rng.lognormal(4, 0.2, 5_700).tolist(), *[None] * 300]
    columns = {"total_ms": totals, "status": status, "route": ["a"] * 5_700 + ["b"] * 300}
    failed = rows_of(gathered(columns, cohort_dims=["route"], every_s=0.01).cohorts)
    assert failed["route", "b"].n == 300
    assert failed["route", "b"].slow_share_pct == pytest.approx(100)
    assert failed["route", "b"].p99_ms is None


def test_nothing_has_no_cohorts() -> None:
    """No requests, and requests without dimensions, have no rows."""
    assert cohort_table(empty("svc")) == ()
    assert cohort_table(gathered({"total_ms": [1.0, 2.0]}).cohorts) == ()
