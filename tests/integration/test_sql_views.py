"""The views say what the models say, and what the raw rows say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clickhouse_store import fresh_store
from random_records import AWKWARD, PANE_NS, SECOND_NS, T0_NS, random_columns, stored_panes

from tailbudget.models.cohort_split import CohortTotals, cohort_split
from tailbudget.models.merge import merge
from tailbudget.models.select import collapse, fold_cohorts
from tailbudget.models.sketch import BUCKETS, stage_quantiles
from tailbudget.models.tail import slow_fast
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.rows import AlertRow, DeployRow
from tailbudget.schemas.summary import TOTAL, Summary
from tailbudget.sinks.clickhouse import ClickHouse

QS = (Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), Fraction(99, 100), Fraction(999, 1000))
NAMES = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms")
RANGE = "service = 'chat', from = '2026-03-02 10:00:00', to = '2026-03-02T10:02:00Z'"


@pytest.fixture(scope="module")
def columns() -> Columns:
    """Two minutes of requests."""
    return random_columns(20, 6000, span_s=120)


@pytest.fixture(scope="module")
def store(clickhouse_path: Path, columns: Columns) -> Iterator[ClickHouse]:
    """A ClickHouse that has them, each pane written twice."""
    panes = stored_panes(columns)
    with fresh_store(clickhouse_path) as opened:
        opened.write_panes(panes)
        opened.write_panes([replace(pane, version=2) for pane in panes])
        yield opened


def one_group(parts: Sequence[Summary]) -> Summary:
    """All panes and cohorts as one group."""
    moved = [replace(p, pane_ns=np.full_like(p.pane_ns, T0_NS), ledger={}) for p in parts]
    return collapse(merge(moved))


def by(rows: list[dict[str, Any]], *keys: str) -> dict[Any, dict[str, Any]]:
    """Index rows by one or more columns."""
    found = {tuple(row[key] for key in keys): row for row in rows}
    assert len(found) == len(rows)
    return {key[0] if len(keys) == 1 else key: row for key, row in found.items()}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("window_s", [10, 60, 3600])
def test_percentiles_are_those_of_the_models_bit_for_bit(
    clickhouse: ClickHouse, seed: int, window_s: int
) -> None:
    """Nearest rank on merged sketches, clipped to the exact extremes: no answer differs."""
    columns = random_columns(100 + seed, 10 ** (seed % 4) * 3, span_s=150, weighted=seed % 2 == 1)
    panes = stored_panes(columns)
    clickhouse.write_panes(panes)
    rows = by(
        clickhouse.query(f"SELECT * FROM latency(window = {window_s})").records(), "start", "stage"
    )
    windows: dict[int, list[Summary]] = {}
    for pane in panes:
        start_s = pane.pane_ns // SECOND_NS // window_s * window_s
        windows.setdefault(start_s, []).append(pane.summary)
    compared = 0
    for start_s, parts in windows.items():
        merged = merge(parts)
        start = str(np.datetime64(start_s, "s")).replace("T", " ")
        for stage in merged.stages:
            wanted = stage_quantiles(merged, stage, QS)
            if wanted is None:
                continue
            row = rows[start, stage]
            assert [row[name] for name in NAMES] == wanted
            compared += len(wanted)
    assert compared >= len(windows) * len(QS)


def test_any_percentile_of_very_many_values(clickhouse: ClickHouse) -> None:
    """Ranks are right to the last request where a float could have rounded n * q up."""
    pane = stored_panes(random_columns(30, 40, span_s=10, routes=("chat",)))[0]
    counts = np.random.default_rng(1).integers(1, 2**44, len(pane.summary.count))
    totals = np.bincount(pane.summary.cell, counts, pane.summary.n.size)
    summary = replace(
        pane.summary,
        count=counts,
        n=totals.astype(np.int64).reshape(pane.summary.n.shape),
    )
    clickhouse.write_panes([replace(pane, summary=summary)])
    for q in ("0.01", "0.29", "0.58", "0.7", "0.95", "0.99", "0.9999", "1"):
        rows = by(
            clickhouse.query(f"SELECT * FROM percentile(q = {q}, window = 10)").records(), "stage"
        )
        for stage in summary.stages:
            wanted = stage_quantiles(summary, stage, [Fraction(q)])
            assert wanted is None or [rows[stage]["ms"]] == wanted, (q, stage)


def test_counts_extremes_and_means_are_exact(store: ClickHouse, columns: Columns) -> None:
    """What is exact in a summary is exact in the view, from the raw rows."""
    rows = by(store.query(f"SELECT * FROM latency_of({RANGE})").records(), "stage")
    ok = columns.outcome == Outcome.OK
    total = columns.total_ms[ok]
    assert rows["total"]["requests"] == len(columns)
    assert rows["total"]["failed"] == int((~ok).sum())
    assert rows["total"]["n"] == len(total)
    assert rows["total"]["min_ms"] == total.min()
    assert rows["total"]["max_ms"] == total.max()
    assert rows["total"]["mean_ms"] == pytest.approx(total.mean(), rel=1e-9)
    for s, stage in enumerate(columns.stages):
        present = columns.stage_ms[s][ok & ~np.isnan(columns.stage_ms[s])]
        assert (rows[stage]["n"], rows[stage]["requests"]) == (len(present), None)
        assert rows[stage]["max_ms"] == present.max()


def test_a_filter_outside_is_a_filter_on_panes(store: ClickHouse, columns: Columns) -> None:
    """A window that starts in the range is there whole, one that does not is not."""
    answer = store.query(
        "SELECT start, n FROM latency(window = 60) WHERE service = 'chat' AND stage = 'total'"
        " AND start >= '2026-03-02 10:01:00'"
    )
    ok = columns.outcome == Outcome.OK
    late = columns.ts_ns >= T0_NS + 60 * SECOND_NS
    assert answer.rows == (("2026-03-02 10:01:00", int((ok & late).sum())),)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("'2026-03-02 10:01:00'", "'2026-03-02 10:02:00'"),
        ("'2026-03-02T10:01:00Z'", "'2026-03-02T12:02:00+02:00'"),
        ("'1772445660'", "'1772445720'"),
        (
            "toDateTime('2026-03-02 10:02:00', 'UTC') - INTERVAL 1 MINUTE",
            "toDateTime('2026-03-02 10:00:00') + INTERVAL 2 MINUTE",
        ),
    ],
)
def test_a_range_is_given_in_any_usual_notation(
    store: ClickHouse, columns: Columns, start: str, end: str
) -> None:
    """Text with or without a zone, seconds since the epoch, and UTC expressions are the same."""
    query = f"SELECT requests FROM latency_of(service = 'chat', from = {start}, to = {end})"
    late = columns.ts_ns >= T0_NS + 60 * SECOND_NS
    assert (int(late.sum()),) in store.query(query).rows


def test_each_cohort_has_its_rows(store: ClickHouse, columns: Columns) -> None:
    """By cohort, requests are those of the raw rows, awkward names and all."""
    rows = store.query(
        "SELECT dims, requests FROM latency_by_cohort(window = 3600) WHERE stage = 'total'"
    ).rows
    found = {tuple(dims.items()): requests for dims, requests in rows}
    numbers = np.bincount(columns.cohort, minlength=len(columns.cohorts))
    assert found == dict(zip(columns.cohorts, numbers.tolist(), strict=True))


def test_failures_are_slower_than_everything(store: ClickHouse, columns: Columns) -> None:
    """Over all requests, the percentiles above the share of successes are failures."""
    row = store.query("SELECT * FROM end_to_end(window = 3600)").records()[0]
    ok = columns.outcome == Outcome.OK
    worst_first = np.sort(np.where(ok, columns.total_ms, np.inf))
    for name, q in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)):
        wanted = worst_first[int(np.ceil(len(columns) * q)) - 1]
        if np.isinf(wanted):
            assert row[name] is None
        else:
            assert row[name] == pytest.approx(wanted, rel=1 / 128)
    assert row["p50_ms"] is not None
    assert row["p99_ms"] is None
    assert row["failures_from_pct"] == pytest.approx(100 * ok.mean())


def test_only_failures_have_no_percentile(clickhouse: ClickHouse) -> None:
    """A window in which everything failed has requests and no latency."""
    columns = random_columns(31, 50, span_s=10)
    failed = replace(columns, outcome=np.full(50, Outcome.TIMEOUT, np.int8))
    clickhouse.write_panes(stored_panes(failed))
    row = clickhouse.query("SELECT * FROM end_to_end(window = 60)").records()[0]
    assert (row["requests"], row["failed"], row["p50_ms"], row["p99_ms"]) == (50, 50, None, None)
    total = clickhouse.query("SELECT * FROM latency(window = 60) WHERE stage = 'total'").records()
    assert [(r["n"], r["requests"], r["p99_ms"], r["max_ms"]) for r in total] == [
        (0, 50, None, None)
    ]


def test_compliance_counts_raw_rows(store: ClickHouse, columns: Columns) -> None:
    """Bad is slower than the threshold, or failed, to the request."""
    rows = by(
        store.query("SELECT * FROM slo_compliance(window = 3600, budget_pct = 10)").records(),
        "threshold_ms",
    )
    ok = columns.outcome == Outcome.OK
    assert sorted(rows) == [100, 250.5]
    for threshold, row in rows.items():
        bad = int((~ok | (columns.total_ms > threshold)).sum())
        assert (row["requests"], row["bad"]) == (len(columns), bad)
        assert row["good_pct"] == pytest.approx(100 * (1 - bad / len(columns)))
        assert row["burn_rate"] == pytest.approx(bad / len(columns) / 0.1)


def test_the_ledger_adds_up(store: ClickHouse, columns: Columns) -> None:
    """Counts of a pane that was written twice are there once."""
    rows = store.query("SELECT reason, sum(records) FROM ledger(window = 60) GROUP BY reason").rows
    assert dict(rows)["accepted"] == len(columns)


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
    assert [row["unfiltered_p99_ms"]] == stage_quantiles(everything, TOTAL, [QS[3]])
    assert [row["filtered_p99_ms"]] == stage_quantiles(merge(warm), TOTAL, [QS[3]])


def test_without_a_deploy_the_filtered_percentile_is_not_computable(store: ClickHouse) -> None:
    """It is NULL, not the unfiltered one again."""
    query = f"SELECT * FROM cold_filtered({RANGE}, minutes = 5, env = '')"
    row = store.query(query).records()[0]
    assert row["unfiltered_p99_ms"] > 0
    assert (row["deploys"], row["excluded"], row["filtered_p99_ms"]) == (0, None, None)


def test_an_open_alert_is_one_that_fired_last(clickhouse: ClickHouse) -> None:
    """A resolved alert is not open; one that fired again is."""

    def change(alert: str, second: int, state: str) -> AlertRow:
        at = T0_NS + second * SECOND_NS
        return AlertRow("chat", alert, at, state, "", 300.0, 200.0, "queue", alert, "{}")

    clickhouse.write_alerts(
        [
            change("p50", 0, "firing"),
            change("p50", 60, "resolved"),
            change("p95", 0, "firing"),
            change("p95", 60, "resolved"),
            change("p95", 120, "firing"),
            change("p99", 30, "firing"),
        ]
    )
    rows = clickhouse.query("SELECT alert, at FROM alerts_open ORDER BY alert").rows
    assert rows == (
        ("p95", "2026-03-02 10:02:00.000000000"),
        ("p99", "2026-03-02 10:00:30.000000000"),
    )


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
