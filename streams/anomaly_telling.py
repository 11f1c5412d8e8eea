"""Telling the changes of anomalies: to people first, then to ClickHouse, each once."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from tailbudget.schemas.anomaly_rows import OVER, AnomalyRow
from tailbudget.schemas.errors import UnavailableError
from tailbudget.schemas.sections import ColdWindow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_log import publish
from tailbudget.streams.anomaly_alerts import alert_name, anomaly_alert
from tailbudget.streams.anomaly_rows import anomaly_row, lost_row, nearest_deploy
from tailbudget.streams.anomaly_watch import AnomalyWatch
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.retrying import retrying
from tailbudget.streams.signal_evidence import SPAN_MS, signal_evidence
from tailbudget.streams.watched import Owner, Watched

log = structlog.get_logger()

CAUSE_WITHIN_MS: Final = 900_000
"""A cause is taken from a report that ended at most a quarter of an hour before the change."""

RETRY_S: Final = 2.0
"""How long what ClickHouse did not take waits."""

_MS: Final = 1_000_000


class Telling:
    """Tells what the watches found.

    Args:
        store: ClickHouse.
        outbox: publishes alerts.
        owner: has the services.
    """

    def __init__(self, store: ClickHouse, outbox: Outbox, owner: Owner) -> None:
        self._store = store
        self._outbox = outbox
        self._owner = owner

    async def tell(self, name: str, found: Watched) -> None:
        """Publish what is not told, then write it; what ClickHouse does not take comes again."""
        changes = list(found.watch.unwritten)
        try:
            since_ms = changes[0].at_ns // _MS - CAUSE_WITHIN_MS
            causes = await asyncio.to_thread(self._store.newest_causes, name, since_ms)
        except UnavailableError:
            causes = {}
        deploys = [nearest_deploy(found.windows, one.onset_ns) for one in changes]
        rows = [
            anomaly_row(name, one, deploy=deploy, cause=causes.get(one.stage, ""))
            for one, deploy in zip(changes, deploys, strict=True)
        ]
        for row, deploy in list(zip(rows, deploys, strict=True))[found.alerted :]:
            await self._alert(row, deploy)
            found.alerted += 1
        try:
            await asyncio.to_thread(self._store.write_anomalies, rows)
        except UnavailableError as error:
            log.warning("anomalies wait", service=name, error=error.message)
            found.retry_s = time.monotonic() + RETRY_S
            return
        del found.watch.unwritten[: len(changes)]
        found.alerted = 0

    async def _alert(self, row: AnomalyRow, deploy: ColdWindow | None) -> None:
        service = self._owner.owned(row.service)
        if service is None:
            return
        signals = await self._signals(row)
        alert = anomaly_alert(service.book, row, deploy, signals=signals, link=service.link)
        if alert is not None:
            await publish([alert], self._store, self._outbox)
            await self._outbox.drain()

    async def clear(self, name: str, found: Watched, now_ns: int) -> None:
        """End what was open when its models were lost, as with a broker that keeps nothing."""
        known = found.watch.open
        service = self._owner.owned(name)
        try:
            rows = await asyncio.to_thread(self._store.anomalies_between, name, now_ns, now_ns)
            over = {(row.stage, row.started_ns) for row in rows if row.phase in OVER}
            over |= set(known.items())
            lost = {(row.stage, row.started_ns): row for row in rows}
            gone = [lost_row(row, now_ns) for key, row in lost.items() if key not in over]
            await asyncio.to_thread(self._store.write_anomalies, gone)
        except UnavailableError as error:
            log.warning("lost anomalies stay open", service=name, error=error.message)
            return
        if service is not None:
            ends = service.book.retire({alert_name(stage) for stage in known}, ("anomaly",), now_ns)
            await publish(ends, self._store, self._outbox)
            await self._outbox.drain()
        found.cleared = True

    async def _signals(self, row: AnomalyRow) -> tuple[str, ...]:
        """Return what changed with the onset; nothing when ClickHouse does not say."""
        onset_ms = row.onset_ns // _MS
        until_ms = min(row.at_ns // _MS + 1, onset_ms + SPAN_MS)
        try:
            values = await asyncio.to_thread(
                self._store.signals_between, row.service, onset_ms - SPAN_MS, until_ms
            )
        except UnavailableError:
            return ()
        return signal_evidence(((v.name, v.instance, v.at_ms, v.value) for v in values), onset_ms)

    async def leave_out_told(self, watch: AnomalyWatch) -> None:
        """Leave out of a restored state what its last owner told before it died."""
        first_ns = min(one.started_ns for one in watch.unwritten)
        last_ns = max(one.started_ns for one in watch.unwritten) + 1
        rows = await retrying(
            lambda: asyncio.to_thread(
                self._store.anomalies_between, watch.service, first_ns, last_ns
            )
        )
        told = {(row.stage, row.started_ns, row.phase, row.at_ns) for row in rows}
        watch.unwritten = [
            one
            for one in watch.unwritten
            if (one.stage, one.started_ns, one.phase, one.at_ns) not in told
        ]
