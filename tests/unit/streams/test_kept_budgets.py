"""Error budgets and silences in the report of a range."""

from __future__ import annotations

from dataclasses import replace

import audits
from random_records import SECOND_NS, T0_NS

from tailbudget.schemas.budgets import BudgetRow, KeptBudget, KeptSilence
from tailbudget.schemas.silences import Silence
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.history import Span
from tailbudget.streams.kept_budgets import with_budgets

SERVICE = "it's"
HOUR_NS = 3600 * SECOND_NS
SPAN = Span(T0_NS, T0_NS + HOUR_NS)
ROW = BudgetRow(SERVICE, "latency", T0_NS, 1000, 7, 99.0, 30.5, None, 1.25, None, "resolved")


def drawn(store: ClickHouse) -> Audit:
    """Return a report of the service over the hour."""
    sparse = audits.sparse()
    audit = replace(sparse, provenance=replace(sparse.provenance, service=SERVICE))
    return with_budgets(audit, lambda query: store.query(query).rows, SPAN)


def test_a_report_says_how_budgets_stood_at_its_end(clickhouse: ClickHouse) -> None:
    """Of each objective the newest row that is not later, and none of another service."""
    end = replace(ROW, at_ns=SPAN.end_ns, bad=9, exhausted_ns=SPAN.end_ns + HOUR_NS)
    later = replace(ROW, at_ns=SPAN.end_ns + SECOND_NS)
    old = replace(ROW, objective="gone", at_ns=T0_NS - 25 * HOUR_NS)
    clickhouse.write_budgets([ROW, end, later, old, replace(ROW, service="search")])
    at, ends = "2026-03-02T11:00:00.000Z", "2026-03-02T12:00:00.000Z"
    assert drawn(clickhouse).budgets == (
        KeptBudget("latency", at, 1000, 9, 99.0, 30.5, None, 1.25, ends, "resolved"),
    )


def test_a_report_names_the_silences_of_its_span(clickhouse: ClickHouse) -> None:
    """Those that ran at any time of it, ended ones as they ended."""
    inside = Silence("a", SERVICE, "p99", T0_NS - HOUR_NS, T0_NS + SECOND_NS, "load test", 1)
    over, other = replace(inside, id="b", ends_ns=T0_NS), replace(inside, id="c", service="x")
    for one in (inside, over, other):
        clickhouse.write_silence(one)
    clickhouse.write_silence(inside)
    begins, ends = "2026-03-02T09:00:00.000Z", "2026-03-02T10:00:01.000Z"
    assert drawn(clickhouse).silences == (KeptSilence("p99", begins, ends, "load test"),)
