"""A service that a worker takes over is judged as if it had never changed hands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_records import PANE_NS, SECOND_NS, T0_NS, random_columns, stored_panes

from tailbudget.models.summarise import summarise
from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.assembly import Folded
from tailbudget.streams.pane_store import PaneStore
from tailbudget.streams.service_audit import ServiceAudit

SOURCE = "requests:0:1"
SLO = SloTarget(p95_ms=200.0, p99_ms=600.0)
MINUTE_NS = 60 * SECOND_NS
NEWEST_NS = T0_NS + 75 * MINUTE_NS


def service_audit() -> ServiceAudit:
    return ServiceAudit("chat", SLO, pane_s=10, book=AlertBook("chat"))


@pytest.fixture(scope="module")
def panes() -> list[StoredPane]:
    """The panes of 75 minutes and of half a minute more."""
    columns = random_columns(7, 9000, span_s=75 * 60 + 25, routes=("chat", "search"))
    return stored_panes(columns, thresholds_ms=SLO.thresholds_ms())


def taken_over(store: ClickHouse, now_ns: int) -> ServiceAudit:
    """An audit of what ClickHouse has, as a worker opens it."""
    audit = service_audit()
    totals = store.recent_totals("chat", audit.reach_ns(now_ns), audit.fine_ns(now_ns))
    audit.restore(totals, fine_ns=audit.fine_ns(now_ns))
    return audit


def newer(now_ns: int) -> Summary:
    """Twenty seconds of requests around a time."""
    columns = random_columns(8, 400, span_s=20, routes=("search", "embed"))
    moved = replace(columns, ts_ns=columns.ts_ns - T0_NS + now_ns - 10 * SECOND_NS)
    return summarise(moved, pane_ns=PANE_NS, thresholds_ms=SLO.thresholds_ms())


@pytest.mark.parametrize("behind_s", [0, 7, 45, 130, 1500])
def test_audits_go_on_as_if_nothing_had_happened(
    clickhouse: ClickHouse, panes: list[StoredPane], behind_s: int
) -> None:
    """Audits and alerts are those of a worker that saw all panes, at and behind the newest."""
    clickhouse.write_panes(panes)
    now_ns = panes[-1].pane_ns - behind_s * SECOND_NS
    old, new = service_audit(), taken_over(clickhouse, now_ns)
    for pane in panes:
        old.add(pane.summary)
    for step in range(4):
        at_ns = now_ns + step * 7 * SECOND_NS
        held = [newer(at_ns)]
        assert _rows(new.rolling(at_ns, held)) == _rows(old.rolling(at_ns, held))
        assert new.judge(at_ns, held) == old.judge(at_ns, held)
        old.add(held[0])
        new.add(held[0])


def _rows(audits: list[AuditRow]) -> list[AuditRow]:
    assert len(audits) in {0, 3, 6, 18}
    return audits


def test_records_read_back_are_not_counted_again(
    clickhouse: ClickHouse, panes: list[StoredPane]
) -> None:
    """Segments below the frontier add nothing to what is restored; later ones add themselves."""
    stored = [replace(pane, frontier={SOURCE: 9000}) for pane in panes]
    clickhouse.write_panes(stored)
    newest_ns = panes[-1].pane_ns
    audit, once = taken_over(clickhouse, newest_ns), taken_over(clickhouse, newest_ns)
    store = PaneStore("chat", pane_s=10, known_ns=newest_ns)
    again = Folded("chat", {SOURCE: 9000}, 1, (panes[-2].summary, panes[-1].summary), 0)
    more = Folded("chat", {SOURCE: 9400}, 2, (newer(newest_ns),), 0)
    missing = store.missing([again, more])
    store.load(missing, clickhouse.read_panes("chat", missing))
    assert store.fold(again) == []
    for delta in store.fold(more):
        audit.add(delta)
    once.add(newer(newest_ns))
    now_ns = newest_ns + 15 * SECOND_NS
    got, want = (one.rolling(now_ns, []) for one in (audit, once))
    assert got == want
    hour = got[-1]
    inside = [p.summary.requests.sum() for p in panes if p.pane_ns >= T0_NS + 16 * MINUTE_NS]
    assert hour.requests == sum(inside) + np.sum(newer(newest_ns).requests)
