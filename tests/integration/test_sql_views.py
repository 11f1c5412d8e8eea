"""The views say what the models say, and what the raw rows say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from clickhouse_store import fresh_store
from random_records import SECOND_NS, T0_NS, random_columns, stored_panes
from sql_answers import RANGE, by

from tailbudget.models.merge import merge
from tailbudget.models.sketch import stage_quantiles
from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.rows import AlertRow
from tailbudget.schemas.summary import Summary
from tailbudget.sinks.clickhouse import ClickHouse

QS = (Fraction(1, 2), Fraction(9, 10), Fraction(19, 20), Fraction(99, 100), Fraction(999, 1000))
NAMES = ("p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms")


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
