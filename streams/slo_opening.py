"""Taking over the objectives of a service: what ClickHouse has of them, and where alerts stand."""

from __future__ import annotations

import asyncio

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


async def open_slo_audit(
    service: str, settings: Settings, store: ClickHouse, *, now_ns: int, mute: Mute = never
) -> tuple[SloAudit, list[Alert]]:
    """Return the objectives of a service that is new to this worker, and what to publish again.

    The newest change of each alert is to be published again: an earlier owner may have died
    between writing and publishing it, and whoever delivers tells no change twice.

    Args:
        service: the service's name.
        settings: what it promises.
        store: what was counted, and the changes of its alerts.
        now_ns: event time; periods are read back as of then.
        mute: why an alert is muted at a time.
    """
    own = settings.service(service)
    changes = await retrying(lambda: asyncio.to_thread(store.last_changes, service))
    book = AlertBook(service, mute)
    book.restore(changes)
    audit = SloAudit(own.slos(service), own.corrections(), pane_s=settings.stream.pane_s, book=book)
    for name, one in audit.series.items():
        for wanted in one.wanted(now_ns):
            audit.restore({name: [await _read(store, one.objective, wanted)]})
    return audit, [alert_of(row) for row in changes]


async def _read(store: ClickHouse, objective: Objective, wanted: Range) -> Tally:
    return await retrying(lambda: asyncio.to_thread(store.read_tally, objective, *wanted))
