"""Up to when a service is complete: what waits holds it back, what amends the past does not."""

from __future__ import annotations

from dataclasses import replace

from faust.types import TP
from random_records import PANE_NS, T0_NS, random_columns

from tailbudget.models.summarise import summarise
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.wire import encode
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.assembly import Folded
from tailbudget.streams.owned_partition import OwnedPartition
from tailbudget.streams.owned_service import OwnedService
from tailbudget.streams.pane_store import PaneStore
from tailbudget.streams.protocol import Segment, Span
from tailbudget.streams.service_audit import ServiceAudit
from tailbudget.streams.settling import settles_ns
from tailbudget.streams.slo_audit import SloAudit

CLOSED_NS = T0_NS + 9 * PANE_NS


def requests_of(pane: int, name: str = "chat") -> Summary:
    """Return requests of one pane."""
    columns = random_columns(1, 40, span_s=10, service=name)
    moved = replace(columns, ts_ns=columns.ts_ns + pane * PANE_NS)
    return summarise(moved, pane_ns=PANE_NS, thresholds_ms=())


def settles(*waiting: Summary, held: Summary | None = None, settled_ns: int = 0) -> int:
    """Return up to when "chat" settles while segments wait, one of them unproven."""
    unfolded = [Folded(one.service, {"requests:0:1": 9}, 1, (one,), 1) for one in waiting]
    partition = OwnedPartition(TP("panes", 0), unfolded=unfolded)
    if held is not None:
        spans = (Span("requests:1:1", 0, 9, T0_NS),)
        partition.assembly.receive(2, Segment(spans, 1, 0, 1, held.service, encode(held)))
    panes = PaneStore("chat", pane_s=10, known_ns=None)
    book = AlertBook("chat")
    audit = ServiceAudit("chat", None, pane_s=10, book=book)
    slo = SloAudit((), (), pane_s=10, book=book)
    service = OwnedService(0, panes, book, audit, slo, settled_ns=settled_ns)
    return settles_ns(service, partition, CLOSED_NS)


def test_without_anything_waiting_it_is_what_has_closed() -> None:
    """Event time less the grace."""
    assert settles() == CLOSED_NS


def test_a_waiting_segment_holds_it_back() -> None:
    """Proven or not: its first pane is not complete."""
    assert settles(requests_of(3)) == T0_NS + 3 * PANE_NS
    assert settles(held=requests_of(4)) == T0_NS + 4 * PANE_NS
    assert settles(requests_of(5), held=requests_of(4)) == T0_NS + 4 * PANE_NS


def test_what_is_not_closed_yet_holds_nothing_back() -> None:
    """The open panes always wait."""
    assert settles(requests_of(9), held=requests_of(12)) == CLOSED_NS


def test_late_records_do_not_hold_reports_back() -> None:
    """They amend what was settled, whenever they come; else a report might never be drawn."""
    before = T0_NS + 6 * PANE_NS
    assert settles(requests_of(2), held=requests_of(5), settled_ns=before) == CLOSED_NS
    assert settles(requests_of(2), held=requests_of(7), settled_ns=before) == before + PANE_NS


def test_other_services_hold_nothing_back() -> None:
    """They share the partition of the panes topic only."""
    assert settles(requests_of(2, "other"), held=requests_of(3, "other")) == CLOSED_NS
