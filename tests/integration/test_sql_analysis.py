"""The views that take an audit apart agree with the models and with the raw rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from clickhouse_store import fresh_store
from folded import fold_cohorts
from random_records import AWKWARD, PANE_NS, SECOND_NS, T0_NS, random_columns, stored_panes
from sql_answers import RANGE, by, one_group

from tailbudget.models.cohort_split import CohortTotals, cohort_split
from tailbudget.models.merge import merge
from tailbudget.models.sketch import BUCKETS, stage_quantiles
from tailbudget.models.tail import slow_fast
from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.rows import DeployRow
from tailbudget.schemas.summary import TOTAL
from tailbudget.sinks.clickhouse import ClickHouse

P99 = Fraction(99, 100)


@pytest.fixture(scope="module")
def columns() -> Columns:
    """Two minutes of requests."""
    return random_columns(20, 6000, span_s=120)


@pytest.fixture(scope="module")
def store(any_clickhouse: Path | ClickHouseTarget, columns: Columns) -> Iterator[ClickHouse]:
    """A ClickHouse that has them, each pane written twice."""
    panes = stored_panes(columns)
    with fresh_store(any_clickhouse) as opened:
        opened.write_panes(panes)
        opened.write_panes([replace(pane, version=2) for pane in panes])
        yield opened


def test_the_tail_is_that_of_the_audit(store: ClickHouse, columns: Columns) -> None:
    """Band means, differences and shares equal the models'."""
    rows = by(store.query(f"SELECT * FROM tail({RANGE})").records(), "stage")
    table = slow_fast(one_group([pane.summary for pane in stored_panes(columns)]))
    assert table is not None
    wanted = {row.stage: row for row in (table.total, *table.rows)}
    assert set(rows) == set(wanted)
    for stage, row in wanted.items():
        found = rows[stage]
        assert (found["slow_n"], found["fast_n"]) == (table.slow_n, table.fast_n)
        for name in ("mean_fast_ms", "mean_slow_ms", "delta_ms", "tail_share_pct"):
            assert found[name] == pytest.approx(getattr(row, name), rel=1e-9), (stage, name)
    top = store.query(
        f"SELECT stage FROM tail({RANGE}) WHERE stage != 'total' ORDER BY delta_ms DESC LIMIT 1"
    ).rows
    assert table.driver is not None
    assert top == ((table.driver.stage,),)


def test_panes_of_other_stages_have_a_tail_together(clickhouse: ClickHouse) -> None:
    """A stage that came with a later version of the service took no time before."""
    before = random_columns(36, 1500, span_s=60, stages=("decode", "queue"))
    after = random_columns(37, 1500, span_s=60, stages=("decode", "network", "prefill"))
    after = replace(after, ts_ns=after.ts_ns + 60 * SECOND_NS)
    panes = [*stored_panes(before), *stored_panes(after)]
    clickhouse.write_panes(panes)
    rows = by(clickhouse.query(f"SELECT * FROM tail({RANGE})").records(), "stage")
    table = slow_fast(one_group([pane.summary for pane in panes]))
    assert table is not None
    assert set(rows) == {"total", *(row.stage for row in table.rows)}
    for row in table.rows:
        assert rows[row.stage]["mean_slow_ms"] == pytest.approx(row.mean_slow_ms, rel=1e-9)
        assert rows[row.stage]["mean_fast_ms"] == pytest.approx(row.mean_fast_ms, rel=1e-9)


def test_the_stage_table_joins_both(store: ClickHouse) -> None:
    """Percentiles and tail stand in one row a stage; the failed have no part in the tail."""
    rows = by(store.query(f"SELECT * FROM stage_table({RANGE})").records(), "stage")
    tail = by(store.query(f"SELECT * FROM tail({RANGE})").records(), "stage")
    latency = by(store.query(f"SELECT * FROM latency_of({RANGE})").records(), "stage")
    assert set(rows) == set(latency)
    for stage, row in rows.items():
        assert row["p99_ms"] == latency[stage]["p99_ms"]
        assert row["delta_ms"] == (tail[stage]["delta_ms"] if stage in tail else None)


def test_the_cohort_table_is_that_of_the_audit(store: ClickHouse, columns: Columns) -> None:
    """P99, difference, share of slow requests and of traffic equal the models', by dimension."""
    wanted = {(row.dimension, row.value): row for row in cohort_split(cohort_totals(columns))}
    for dimension, values in (("route", AWKWARD), ("region", ("eu", "us"))):
        query = f"SELECT * FROM cohort_table({RANGE}, dimension = '{dimension}')"
        rows = by(store.query(query).records(), "value")
        assert set(rows) == set(values)
        for value, row in rows.items():
            audit = wanted[dimension, value]
            assert row["requests"] == audit.n
            assert row["slow_share_pct"] == pytest.approx(audit.slow_share_pct, rel=1e-9)
            assert row["traffic_share_pct"] == pytest.approx(audit.traffic_share_pct, rel=1e-9)
            if audit.p99_ms is not None:
                assert row["p99_ms"] == audit.p99_ms
                assert row["delta_ms"] == audit.delta_ms


def test_folded_cohorts_are_named_so(clickhouse: ClickHouse) -> None:
    """Requests of cohorts beyond the bound are in the value "(other)" of every dimension."""
    pane = stored_panes(random_columns(33, 400, span_s=10))[0]
    folded = fold_cohorts(pane.summary, set(pane.summary.cohorts[:1]))
    clickhouse.write_panes([replace(pane, summary=folded)])
    query = f"SELECT * FROM cohort_table({RANGE}, dimension = 'region')"
    rows = by(clickhouse.query(query).records(), "value")
    assert set(rows) == {"(other)", pane.summary.cohorts[0][1][1]}
    assert sum(row["requests"] for row in rows.values()) == 400
    assert sum(row["slow_share_pct"] for row in rows.values()) == pytest.approx(100)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_regressions_equal_those_on_raw_rows(clickhouse: ClickHouse, offset: float) -> None:
    """R², slope and intercept are numpy's to 1e-9, far from the origin too."""
    columns = random_columns(34, 5000, span_s=120)
    columns = replace(columns, covariate=columns.covariate % 97 + offset)
    clickhouse.write_panes(stored_panes(columns))
    rows = by(clickhouse.query(f"SELECT * FROM shape({RANGE})").records(), "stage", "covariate")
    ok = columns.outcome == Outcome.OK
    series = {TOTAL: columns.total_ms, **dict(zip(columns.stages, columns.stage_ms, strict=True))}
    assert len(rows) == (len(series) + 1) * len(columns.covariates)
    for c, covariate in enumerate(columns.covariates):
        for stage, values in series.items():
            use = ok & ~np.isnan(values) & ~np.isnan(columns.covariate[c])
            x, y = columns.covariate[c][use], values[use]
            dx, dy = x - x.mean(), y - y.mean()
            slope = dx @ dy / (dx @ dx)
            row = rows[stage, covariate]
            assert row["n"] == len(x)
            assert row["slope_ms_per_unit"] == pytest.approx(slope, rel=1e-9)
            assert row["intercept_ms"] == pytest.approx(y.mean() - slope * x.mean(), rel=1e-9)
            assert row["r2"] == pytest.approx((dx @ dy) ** 2 / (dx @ dx) / (dy @ dy), rel=1e-9)
            assert row["loglog_slope"] == pytest.approx(log_slope(x, y), rel=1e-8)


def test_cold_windows_are_left_out(clickhouse: ClickHouse) -> None:
    """The filtered P99 is that of the panes that no deploy's window touches."""
    columns = random_columns(35, 3000, span_s=120)
    panes = stored_panes(columns)
    clickhouse.write_panes(panes)
    at = T0_NS + 25 * SECOND_NS
    clickhouse.write_deploys(
        [
            DeployRow("chat", "prod", "v2", at, at, "deploy"),
            DeployRow("chat", "prod", "v2", at, at + 8 * SECOND_NS, "deploy"),
            DeployRow("chat", "staging", "v3", at, at + 60 * SECOND_NS, "deploy"),
            DeployRow("search", "prod", "v9", at, at, "deploy"),
        ]
    )
    query = f"SELECT * FROM cold_filtered({RANGE}, minutes = 1, env = 'prod')"
    row = clickhouse.query(query).records()[0]
    # From 10:00:25 to 10:01:33: the panes from 10:00:20 up to 10:01:30.
    warm = [p.summary for p in panes if not 2 <= (p.pane_ns - T0_NS) // PANE_NS <= 9]
    cold = [p.summary for p in panes if 2 <= (p.pane_ns - T0_NS) // PANE_NS <= 9]
    everything = merge([p.summary for p in panes])
    assert row["deploys"] == 1
    assert row["requests"] == 3000
    assert row["excluded"] == int(merge(cold).requests.sum())
    assert [row["unfiltered_p99_ms"]] == stage_quantiles(everything, TOTAL, [P99])
    assert [row["filtered_p99_ms"]] == stage_quantiles(merge(warm), TOTAL, [P99])


def test_without_a_deploy_the_filtered_percentile_is_not_computable(store: ClickHouse) -> None:
    """It is NULL, not the unfiltered one again."""
    query = f"SELECT * FROM cold_filtered({RANGE}, minutes = 5, env = '')"
    row = store.query(query).records()[0]
    assert row["unfiltered_p99_ms"] > 0
    assert (row["deploys"], row["excluded"], row["filtered_p99_ms"]) == (0, None, None)


def log_slope(x: np.ndarray, y: np.ndarray) -> float:
    """Least squares of ln y on ln x, over rows where both exist."""
    use = (x > 0) & (y > 0)
    lx, ly = np.log(x[use]), np.log(y[use])
    dx = lx - lx.mean()
    return float(dx @ (ly - ly.mean()) / (dx @ dx))


def cohort_totals(columns: Columns) -> CohortTotals:
    """The sketch of the total of each cohort, from the summary of all panes."""
    together = merge(
        [
            replace(p.summary, pane_ns=np.full_like(p.summary.pane_ns, T0_NS), ledger={})
            for p in stored_panes(columns)
        ]
    )
    counts = np.zeros((len(together.cohorts), BUCKETS), np.int64)
    group, stage = np.divmod(together.cell, len(together.stages))
    mine = stage == together.stages.index(TOTAL)
    counts[group[mine], together.bucket[mine]] = together.count[mine]
    return CohortTotals(
        cohorts=together.cohorts,
        requests=together.requests,
        failed=together.failed,
        first_bucket=0,
        counts=counts,
        min_ms=together.min_ms[:, 0],
        max_ms=together.max_ms[:, 0],
    )
