"""Taking over the objectives of a service: what ClickHouse has of them, and where alerts stand."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from tailbudget.models.slo_window import SECOND_NS
from tailbudget.schemas.alert import Alert
from tailbudget.schemas.objectives import Objective
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.tally import Tally
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_book import AlertBook, Mute, never
from tailbudget.streams.alert_log import alert_of
from tailbudget.streams.retrying import retrying
from tailbudget.streams.slo_audit import SloAudit
from tailbudget.streams.slo_series import Range


async def open_book(
    service: str, store: ClickHouse, mute: Mute = never
) -> tuple[AlertBook, list[Alert]]:
    """Return where the alerts of a service stand, and what to publish again.

    The newest change of each alert is to be published again: an earlier owner may have died
    between writing and publishing it, and whoever delivers tells no change twice.

    Args:
        service: the service's name.
        store: the changes of its alerts.
        mute: why an alert is muted at a time.
    """
    changes = await retrying(lambda: asyncio.to_thread(store.last_changes, service))
    book = AlertBook(service, mute)
    book.restore(changes)
    return book, [alert_of(row) for row in changes]


async def open_slo_audit(
    book: AlertBook, settings: Settings, store: ClickHouse, *, now_ns: int, newest_ns: int
) -> SloAudit:
    """Return the objectives of a service that is new to this worker.

    Args:
        book: states of the service's alerts.
        settings: what it promises.
        store: what was counted.
        now_ns: event time; periods are read back as of then.
        newest_ns: start of the newest pane that counts.
    """
    own = settings.service(book.service)
    pane_s = settings.stream.pane_s
    audit = SloAudit(own.slos(book.service), own.corrections(), pane_s=pane_s, book=book)
    together: defaultdict[Range, list[Objective]] = defaultdict(list)
    for one in audit.series.values():
        for wanted in one.wanted(now_ns):
            end_ns = max(wanted.until_ns, newest_ns + pane_s * SECOND_NS)
            together[wanted._replace(until_ns=end_ns)].append(one.objective)
    for wanted, objectives in together.items():
        tallies = await _read(store, objectives, wanted)
        for objective, read in zip(objectives, tallies, strict=True):
            audit.restore({objective.name: [read]})
    return audit


async def _read(store: ClickHouse, objectives: Sequence[Objective], wanted: Range) -> list[Tally]:
    """Count what objectives of one period have in common by one query: it reads panes once."""
    return await retrying(lambda: asyncio.to_thread(store.read_tallies, objectives, *wanted))
