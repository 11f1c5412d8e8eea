"""Every query of docs/sql.md runs, and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from audit_parts import FIX
from clickhouse_store import fresh_store
from random_records import SECOND_NS, T0_NS, random_columns, stored_panes

from tailbudget.schemas.anomaly_rows import AnomalyRow, ColdWindowRow, ShapeModelRow, SignalRow
from tailbudget.schemas.audit_rows import (
    FULL,
    AuditCauseRow,
    AuditRow,
    AuditShapeRow,
    AuditStageRow,
)
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.rows import AlertRow, DeployRow
from tailbudget.sinks.clickhouse import ClickHouse

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
QUERIES = re.findall(
    r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)
AUDIT = AuditRow(
    service="chat",
    window_s=60,
    end_ns=T0_NS + 60 * SECOND_NS,
    version=1,
    verdict="breach",
    requests=1500,
    failed=7,
    p99_ms=310.0,
    slo_p99_ms=200.0,
    tail_driver="queue",
)
CAUSE = AuditCauseRow("contention", "queue", "route=chat", "", 0.8, ("queue: 92 % of the slow",))
STAGE = AuditStageRow(
    stage="queue",
    n=1400,
    p50_ms=5.0,
    p99_ms=200.0,
    delta_ms=185.0,
    p99_share_pct=80.0,
    delta_low_ms=170.0,
    delta_high_ms=199.0,
)
REPORTS = [
    replace(
        AUDIT,
        window_s=window_s,
        end_ns=T0_NS + 3_600 * SECOND_NS,
        version=FULL + 1,
        stages=(STAGE,),
        shape=(AuditShapeRow("decode", "input_tokens", 1400, 0.7, 0.02, 3.0),),
        causes=(CAUSE,),
        optimizations=(FIX,),
    )
    for window_s in (300, 3_600, 86_400)
]
MS = 1_000_000
ANOMALY = AnomalyRow(
    "chat", "prefill", ("route=chat",), "started", "mean", T0_NS - SECOND_NS, T0_NS, T0_NS, 30.0,
    25.0, 35.0, 9.0, 8.0, 10.5, 30.0, 39.0, 120, "v2", "contention",
)  # fmt: skip
MODEL = ShapeModelRow(
    "chat", "prefill", "route=chat", T0_NS // MS, "ready", ("1", "input_tokens"), (5.0, 0.03),
    400.5, 0.7, 0.1,
)  # fmt: skip
VIEWS = re.compile(r"^\| `(\w+)", re.MULTILINE)


@pytest.fixture(scope="module")
def columns() -> Columns:
    """Two minutes of requests, one in 200 of which failed."""
    some = random_columns(40, 3000, span_s=120)
    failed = np.arange(len(some)) % 200 == 0
    outcome = np.where(failed, Outcome.TIMEOUT, Outcome.OK).astype(np.int8)
    known = np.where(np.isnan(some.total_ms), 1.0, some.total_ms)
    return replace(some, outcome=outcome, total_ms=known)


@pytest.fixture(scope="module")
def store(clickhouse_path: Path, columns: Columns) -> Iterator[ClickHouse]:
    """A ClickHouse with something of everything."""
    panes = stored_panes(columns)
    ledger = dict(panes[0].summary.ledger) | {(T0_NS, "rejected.no_id"): 4}
    first = replace(panes[0], summary=replace(panes[0].summary, ledger=ledger))
    at = T0_NS - 280 * SECOND_NS
    with fresh_store(clickhouse_path) as opened:
        opened.write_panes([first, *panes[1:]])
        opened.write_audits([AUDIT, *REPORTS])
        opened.write_alerts(
            [AlertRow("chat", "p99", T0_NS, "firing", "over", 300.0, 200.0, "queue", "id", "{}")]
        )
        opened.write_deploys([DeployRow("chat", "prod", "v2", at, at, "deploy")])
        opened.write_anomalies([ANOMALY, replace(ANOMALY, phase="ended", at_ns=T0_NS + SECOND_NS)])
        opened.write_shape_models([MODEL])
        opened.write_cold_windows(
            [ColdWindowRow("chat", "v2", at // MS, at // MS + 60_000, "deploy", 1.0)]
        )
        opened.write_signals([SignalRow("chat", "gpu-3", "sm_clock_mhz", T0_NS // MS, 1410.0)])
        yield opened


def test_the_page_has_its_ten_queries() -> None:
    """As promised, and one more on whole requests."""
    assert len(QUERIES) >= 10


@pytest.mark.parametrize(
    "query", QUERIES, ids=[query.split("FROM ")[1].split()[0] for query in QUERIES]
)
def test_each_query_of_the_page_answers(store: ClickHouse, query: str) -> None:
    """No query is wrong or empty, and none of its columns is NULL in every row."""
    answer = store.query(query)
    assert answer.rows
    assert not answer.truncated
    for place, column in enumerate(answer.columns):
        assert any(row[place] is not None for row in answer.rows), column


def test_each_view_of_the_page_exists(store: ClickHouse) -> None:
    """The table of views lists what is there, and all of it."""
    tables = {name for (name,) in store.query("SHOW TABLES").rows}
    listed = set(VIEWS.findall(PAGE.read_text(encoding="utf-8")))
    assert listed <= tables
    internal = {"panes", "current_panes", "topics", "migrations", "rollups"}
    details = {"audit_stages", "audit_cohorts", "alerts", "deploys"}
    details |= {"audit_shape", "audit_causes", "audit_optimizations"}
    details |= {"alert_changes", "alert_notices", "budgets", "silences"}
    details |= {"anomalies", "shape_models", "cold_windows", "signals"}
    assert tables - listed == internal | details


def test_the_slowest_request_is_named(store: ClickHouse, columns: Columns) -> None:
    """The sample keeps the slowest of all, by its id."""
    query = next(query for query in QUERIES if "sample_id" in query)
    top = store.query(query).records()[0]
    slowest = int(np.where(columns.outcome == Outcome.OK, columns.total_ms, 0).argmax())
    assert top["id"] == columns.ids[slowest]
    assert top["total_ms"] == round(float(columns.total_ms[slowest]), 1)
