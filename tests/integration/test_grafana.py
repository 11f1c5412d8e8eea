"""Every query of the Grafana dashboard and of its alert rules answers on the real schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit_parts import FIX
from clickhouse_store import fresh_store
from grafana import Query, Range, queries, sent
from past import PastService
from random_records import SECOND_NS, T0_NS, random_columns

from tailbudget.models.summarise import summarise
from tailbudget.schemas.alert_rows import ChangeRow
from tailbudget.schemas.audit_rows import FULL, AuditCauseRow, AuditRow
from tailbudget.schemas.budgets import BudgetRow
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.rows import AlertRow, DeployRow
from tailbudget.schemas.slo import SloTarget
from tailbudget.sinks.clickhouse import Answer, ClickHouse
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.service_audit import ServiceAudit

SPAN_S = 400
LAST_S = 360
"""When the last audit ends."""
CHOSEN = Range(T0_NS // 10**9 - 60, T0_NS // 10**9 + SPAN_S + 60, 30)
HOSTILE = "a'b\\\"; DROP TABLE panes; -- <b>\u202eß"
SERVICES = ("chat", HOSTILE)
QUERIES = list(queries())
NUMBER = re.compile(r"^(Nullable\()?(U?Int|Float|Bool)")
TIME = re.compile(r"^(Nullable\()?DateTime")
TEXT = re.compile(r"^(LowCardinality\()?(Nullable\()?String")
MAY_BE_NULL = {"SLO p50", "SLO p95"}
"""What the service of the test does not promise."""

CAUSE = AuditCauseRow(
    "contention", "queue", "route=chat", "", 0.8, ("92 % in queue",), ("-",), ("-",)
)


def requests_of(service: str) -> Columns:
    """Return requests of which one in 200 failed, so that percentiles are no failures."""
    some = random_columns(7, 6000, span_s=SPAN_S, service=service)
    outcome = np.where(np.arange(len(some)) % 200 == 0, Outcome.TIMEOUT, Outcome.OK)
    known = np.where(np.isnan(some.total_ms), 1.0, some.total_ms)
    return replace(some, outcome=outcome.astype(np.int8), total_ms=known)


def audited(service: str) -> list[AuditRow]:
    """Write the panes of a service; return its rolling audits and a report of an hour."""
    audit = ServiceAudit(service, SloTarget(p99_ms=100.0), pane_s=10, book=AlertBook(service))
    audit.add(summarise(requests_of(service), pane_ns=10 * SECOND_NS, thresholds_ms=(100.0,)))
    found = [
        row
        for at_s in range(60, LAST_S + 1, 60)
        for row in audit.rolling(T0_NS + at_s * SECOND_NS, [])
    ]
    last = [row for row in found if row.window_s == 3600][-1]
    report = replace(last, version=FULL + 1, causes=(CAUSE,), optimizations=(FIX,))
    return [*found, report]


def alert(service: str, at_s: int, state: str) -> AlertRow:
    """Return a change of the one alert of a service."""
    at_ns = T0_NS + at_s * SECOND_NS
    said = "p99 300 ms over 100 ms"
    return AlertRow(service, "p99", at_ns, state, said, 300.0, 100.0, "queue", "one", "{}")


def kept(service: str, at_s: int, left_pct: float) -> BudgetRow:
    """Return what is left of the one error budget of a service."""
    at_ns = T0_NS + at_s * SECOND_NS
    spent_ns = T0_NS + 86_400 * SECOND_NS
    return BudgetRow(
        service, "latency", at_ns, 9_000, 8, 99.9, left_pct, 99.0, 2.5, spent_ns, "firing"
    )


def change(service: str) -> ChangeRow:
    """Return a change of an alert that cost some of the budget."""
    at_ns = T0_NS + 100 * SECOND_NS
    return ChangeRow(
        service, "slo:latency", 1, at_ns, "one", "pending", "firing", "burn_rate", "14.4 times",
        "page", at_ns, None, 40.0, 2.0, "{}", "{}",
    )  # fmt: skip


@pytest.fixture(scope="module")
def store(clickhouse_path: Path) -> Iterator[ClickHouse]:
    """A ClickHouse with something of everything, of two services."""
    with fresh_store(clickhouse_path) as opened:
        for service in SERVICES:
            past = PastService(opened, service)
            past.write(requests_of(service))
            first = past.panes[min(past.panes)]
            ledger = dict(first.summary.ledger) | {(first.pane_ns, "rejected.no_id"): 400}
            summary = replace(first.summary, ledger=ledger)
            opened.write_panes([replace(first, summary=summary, version=9)])
            opened.write_audits(audited(service))
            opened.write_alerts([alert(service, 100, "firing")])
            opened.write_changes([change(service)])
            opened.write_budgets([kept(service, 200, 40.0), kept(service, 300, 8.0)])
            at_ns = T0_NS + 120 * SECOND_NS
            opened.write_deploys([DeployRow(service, "prod", "v2", at_ns, at_ns, "deploy")])
        yield opened


def ask(store: ClickHouse, query: Query, service: str) -> Answer:
    """Return the answer to a query for a viewer who has chosen a service."""
    variables = {
        "service": service.encode().hex(),
        "dimension": b"route".hex(),
        "datasource": "tailbudget-clickhouse",
    }
    return store.query(sent(query.sql, CHOSEN, variables))


def column(answer: Answer, name: str) -> list[Any]:
    """Return a column of an answer."""
    return [row[answer.columns.index(name)] for row in answer.rows]


@pytest.mark.parametrize("service", SERVICES, ids=["chat", "hostile"])
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.kind}: {query.name}")
def test_each_query_answers(store: ClickHouse, query: Query, service: str) -> None:
    """It has rows, within the limits, and no column is NULL in all of them."""
    answer = ask(store, query, service)
    assert answer.rows
    assert not answer.truncated
    for name in set(answer.columns) - MAY_BE_NULL:
        assert any(value is not None for value in column(answer, name)), name


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.kind}: {query.name}")
def test_each_answer_is_of_the_kind_that_its_place_takes(store: ClickHouse, query: Query) -> None:
    """A graph gets times in order and numbers, an alert one number and labels, and so on."""
    answer = ask(store, query, "chat")
    types = dict(zip(answer.columns, answer.types, strict=True))
    numbers = [name for name, kind in types.items() if NUMBER.match(kind)]
    labels = [name for name, kind in types.items() if TEXT.match(kind)]
    if query.kind == "timeseries":
        assert TIME.match(types.pop("time"))
        assert column(answer, "time") == sorted(column(answer, "time"))
        assert numbers
        assert set(types) == {*numbers, *labels}
        assert not labels or len(numbers) == 1
    elif query.kind == "annotation":
        assert TIME.match(types["time"])
        assert {"title", "text"} <= set(labels)
        assert types.keys() <= {"time", "timeEnd", "title", "text"}
    elif query.kind == "variable":
        assert len(types) == len(labels) == 2
    elif query.kind == "alert":
        assert len(numbers) == 1
        assert set(types) == {*numbers, *labels}


def by_name(name: str) -> Query:
    """Return a query by what it is called."""
    return next(query for query in QUERIES if query.name == name)


def test_any_name_can_be_chosen(store: ClickHouse) -> None:
    """The variables give names in hexadecimal, with the names as they are beside them."""
    services = ask(store, by_name("service"), "").rows
    assert {(bytes.fromhex(value).decode(), text) for value, text in services} == {
        (name, name) for name in SERVICES
    }
    dimensions = ask(store, by_name("dimension"), HOSTILE).rows
    assert [text for _, text in dimensions] == ["region", "route"]


def test_the_stack_of_stages_adds_up(store: ClickHouse) -> None:
    """Each moment has each stage once, and only of the audit that counts."""
    answer = ask(store, by_name("Stages of the slow requests A"), "chat")
    places = [(row[0], row[1]) for row in answer.rows]
    assert len(places) == len(set(places))
    assert {stage for _, stage in places} == {"decode", "prefill", "queue", "unattributed"}


def test_percentiles_are_those_of_the_merged_sketches(store: ClickHouse) -> None:
    """The graph of an interval has what the view has for it."""
    row = ask(store, by_name("Percentiles and their targets A"), "chat").records()[0]
    sql = "SELECT p99_ms FROM end_to_end(window = 30) WHERE service = 'chat' ORDER BY start LIMIT 1"
    assert row["p99"] == store.query(sql).rows[0][0]


def test_a_breach_ends_where_it_was_resolved(store: ClickHouse) -> None:
    """The band of a breach that goes on ends now, that of another at its recovery."""
    query = by_name("Breaches")
    (before,) = ask(store, query, "chat").records()
    store.write_alerts([alert("chat", 160, "resolved")])
    (after,) = ask(store, query, "chat").records()
    assert before["timeEnd"] > after["timeEnd"]
    assert after["timeEnd"].startswith("2026-03-02 10:02:40")
    assert after["text"] == "p99 300 ms over 100 ms"


def test_alerts_see_what_is_wrong(store: ClickHouse) -> None:
    """The breach is 1 for each service; silence is in seconds, refusals in percent."""
    said = {
        query.name: {row[0]: row[1] for row in ask(store, query, "").rows}
        for query in QUERIES
        if query.kind == "alert"
    }
    assert said["A service breaks its latency budget"] == dict.fromkeys(SERVICES, 1)
    assert said["A service sends nothing any more"]["chat"] == SPAN_S + 60 - LAST_S
    (budgets,) = (query for query in QUERIES if query.name == "An error budget is nearly spent")
    assert ask(store, budgets, "").rows[0][1:] == ("latency", 8.0)
    assert said["Records are refused"]["chat"] == pytest.approx(100 * 400 / 6400)


def test_what_is_not_judged_alerts_nobody(clickhouse: ClickHouse) -> None:
    """A service with too few requests has no row in the breach rule."""
    row = AuditRow("rare", 300, T0_NS + 60 * SECOND_NS, 1, "insufficient", 3, 0)
    clickhouse.write_audits([row])
    query = by_name("A service breaks its latency budget")
    assert clickhouse.query(sent(query.sql, CHOSEN, {})).rows == ()
