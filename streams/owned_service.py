"""A service that this worker's audit agent owns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.pane_store import PaneStore
from tailbudget.streams.restore import restore
from tailbudget.streams.retrying import retrying
from tailbudget.streams.service_audit import ServiceAudit


@dataclass(slots=True)
class OwnedService:
    """What the audit agent keeps of one service.

    Attributes:
        partition: of the panes topic, where all of the service's summaries arrive.
        panes: what is folded.
        audit: windows and verdicts.
        sources: source partitions that have sent something of the service.
        seen: when it last sent something, seconds of a growing clock.
        settled_ns: event time up to which everything is in ClickHouse; 0 before the first flush.
    """

    partition: int
    panes: PaneStore
    audit: ServiceAudit
    sources: set[str] = field(default_factory=set)
    seen: float = 0.0
    settled_ns: int = 0

    def now_ns(
        self, watermarks: Mapping[str, int], arrived: Mapping[str, float], since: float
    ) -> int:
        """Return event time: the least watermark of the sources that are not idle.

        Args:
            watermarks: newest event time of each source.
            arrived: when each source last sent something.
            since: a source that sent nothing since then is idle.
        """
        live = [watermarks[s] for s in self.sources if arrived.get(s, 0.0) >= since]
        return min(live) if live else max(watermarks[s] for s in self.sources)


async def open_service(
    name: str, partition: int, settings: Settings, store: ClickHouse, *, event_ns: int
) -> OwnedService:
    """Return a service that is new to this worker, with what judging needs read back."""
    pane_s = settings.stream.pane_s
    known = await retrying(lambda: asyncio.to_thread(store.newest_pane, name))
    web = settings.web
    link = f"http://{web.host}:{web.port}/services/{quote(name, safe='')}"
    slo = settings.service(name).slo
    audit = ServiceAudit(name, slo, pane_s=pane_s, link=link if web.enabled else "")
    if known is not None:
        await restore(audit, store, newest_ns=known, event_ns=event_ns)
    return OwnedService(partition, PaneStore(name, pane_s=pane_s, known_ns=known), audit)
