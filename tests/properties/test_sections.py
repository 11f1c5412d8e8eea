"""The measuring sections against brute force on raw rows."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from gathered import gathered
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.cohort_table import cohort_table
from tailbudget.models.nesting import Container
from tailbudget.models.shape_table import shape_table
from tailbudget.models.stage_table import light_stage_table, stage_table
from tailbudget.models.tail import slow_fast
from tailbudget.schemas.sections import StageRole, StageRow

SEEDS = st.integers(0, 2**32 - 1)


def _stages(rng: np.random.Generator, n: int, count: int) -> dict[str, Any]:
    spread = rng.uniform(0.1, 1.2, count)
    return {f"s{k}": rng.lognormal(3 + rng.normal(), spread[k], n) for k in range(count)}


def _added(rows: tuple[StageRow, ...], name: str) -> float:
    return math.fsum(getattr(row, name) or 0.0 for row in rows)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, n=st.integers(5, 400), count=st.integers(1, 6), slack=st.booleans())
def test_parts_add_up_to_the_gap(seed: int, n: int, count: int, *, slack: bool) -> None:
    """Serial stages and unattributed time: the deltas make up the total's, the shares 100 %."""
    rng = np.random.default_rng(seed)
    stages = _stages(rng, n, count)
    total = sum(stages.values()) + (rng.exponential(30, n) if slack else 0.0)
    columns = {f"{name}_ms": values for name, values in stages.items()} | {"total_ms": total}
    summary = gathered(columns).total
    table, tail = stage_table(summary, "p95"), slow_fast(summary)
    assert tail is not None
    added = [row for row in table.rows if row.role is not StageRole.CONTAINER]
    if table.structure.plain:
        assert _added(tuple(added), "delta_ms") == pytest.approx(tail.total.delta_ms, abs=1e-4)
    assert _added(table.rows, "gap_ms") == pytest.approx(tail.total.delta_ms, abs=1e-6)
    assert _added(table.rows, "p99_share_pct") == pytest.approx(100, abs=1e-3)
    bare = tuple(replace(row, delta_interval_ms=None) for row in table.rows)
    assert bare == light_stage_table(summary, "p95").rows


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, n=st.integers(5, 400), count=st.integers(2, 7), serial=st.integers(0, 3))
def test_shares_of_whatever_overlaps_never_exceed_the_total(
    seed: int, n: int, count: int, serial: int
) -> None:
    """Branches beside each other, serial stages, any spread: at most 100 %, and the gap adds up."""
    rng = np.random.default_rng(seed)
    stages = _stages(rng, n, count + serial)
    branches = [stages[f"s{k}"] for k in range(count)]
    total = np.max(branches, axis=0) + sum(stages[f"s{k}"] for k in range(count, count + serial))
    columns = {f"{name}_ms": values for name, values in stages.items()} | {"total_ms": total + 1}
    summary = gathered(columns).total
    table, tail = stage_table(summary, "p95"), slow_fast(summary)
    assert tail is not None
    assert _added(table.rows, "p99_share_pct") <= 100 + 1e-9
    assert all((row.p99_share_pct or 0) >= 0 for row in table.rows)
    assert _added(table.rows, "gap_ms") == pytest.approx(tail.total.delta_ms, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, parts=st.integers(2, 5), spoilt=st.floats(0, 0.03))
def test_sum_of_others_is_found_whatever_the_parts(seed: int, parts: int, spoilt: float) -> None:
    """A stage that is the sum of others in nearly every row is their container."""
    rng = np.random.default_rng(seed)
    stages = {f"s{k}": rng.gamma(4, rng.uniform(5, 20), 600) for k in range(parts)}
    whole = sum(stages.values())
    whole = np.where(rng.random(600) < spoilt, whole * 1.5, whole)
    columns = {f"{name}_ms": values for name, values in stages.items()}
    columns |= {"whole_ms": whole, "after_ms": rng.gamma(4, 3, 600)}
    columns["total_ms"] = whole + columns["after_ms"] + rng.exponential(5, 600)
    table = stage_table(gathered(columns).total, "p95")
    assert Container("whole", tuple(stages), exact=True) in table.structure.containers
    assert table.driver is None or table.driver.stage != "whole"


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, dims=st.integers(1, 3), n=st.integers(1, 2_500))
def test_cohorts_equal_those_of_the_raw_rows(seed: int, dims: int, n: int) -> None:
    """Counts are exact, and p99s with and without each part those of sorting, to a bucket."""
    rng = np.random.default_rng(seed)
    columns = {f"d{k}": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]) for k in range(dims)}
    totals = rng.lognormal(4, 1, n) * np.where(columns["d0"] == "b", 3, 1)
    rows = cohort_table(
        gathered({"total_ms": totals, **columns}, cohort_dims=tuple(columns), every_s=0.01).cohorts
    )
    singles = {(name, value) for name in columns for value in np.unique(columns[name]).tolist()}
    assert singles <= {(row.dimension, row.value) for row in rows}
    for row in rows:
        mine = np.ones(n, np.bool_)
        pairs = zip(row.dimension.split("+"), row.value.split("+"), strict=True)
        if row.dimension == "cohort":
            pairs = (pair.split("=") for pair in row.value.split(","))  # type: ignore[assignment]
        for name, value in pairs:
            mine &= columns[name] == value
        assert row.n == mine.sum()
        assert row.traffic_share_pct == pytest.approx(100 * mine.mean())
        for found, values in ((row.p99_ms, totals[mine]), (row.p99_without_ms, totals[~mine])):
            if len(values) < 1_000:
                assert found is None
            else:
                exact = np.sort(values)[math.ceil(0.99 * len(values)) - 1]
                assert found == pytest.approx(exact, rel=1 / 128)


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, n=st.integers(30, 300))
def test_shape_equals_numpy_on_the_raw_rows(seed: int, n: int) -> None:
    """Slopes, R² and correlations are numpy's; bands and units those of the sampled rows."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(1, 1_000, n).astype(float)
    size = np.where(rng.random(n) < 0.5, tokens + rng.normal(0, 100, n), rng.uniform(0, 1_000, n))
    model = np.abs(0.3 * tokens + rng.normal(50, 20, n)) + 1
    table = shape_table(
        gathered(
            {"tokens": tokens, "size": size, "model_ms": model, "total_ms": model + 5},
            covariates=("tokens", "size"),
        ).total,
        "p95",
    )
    columns = {"tokens": tokens, "size": size}
    for row in table.rows:
        y = {"model": model, "total": model + 5}.get(row.stage)
        if y is not None:
            slope, intercept = np.polyfit(columns[row.covariate], y, 1)
            r = np.corrcoef(columns[row.covariate], y)[0, 1]
            assert row.slope_ms_per_unit == pytest.approx(slope, rel=1e-6, abs=1e-9)
            assert row.intercept_ms == pytest.approx(intercept, rel=1e-6)
            assert row.r2 == pytest.approx(r * r, rel=1e-6, abs=1e-9)
    together = {(pair.first, pair.second): pair.r for pair in table.collinear}
    for first, second in combinations(sorted(columns), 2):
        r = np.corrcoef(columns[first], columns[second])[0, 1]
        if abs(abs(r) - 0.7) > 1e-6:
            assert ((first, second) in together) == (abs(r) > 0.7)
    unit = next(row for row in table.per_unit if row.stage == "model")
    ordered = np.sort(model / tokens)
    assert unit.n == n
    assert unit.p50_ms == pytest.approx(ordered[math.ceil(n / 2) - 1])
