"""A service that this worker's audit agent owns."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from tailbudget.schemas.alert import COLD_START, Alert
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.summary import Summary
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_book import AlertBook, Explain, Mute, never
from tailbudget.streams.pane_store import PaneStore
from tailbudget.streams.restore import replays, restore
from tailbudget.streams.retrying import retrying
from tailbudget.streams.service_audit import ServiceAudit
from tailbudget.streams.slo_audit import SloAudit
from tailbudget.streams.slo_opening import open_book, open_slo_audit


@dataclass(slots=True)
class OwnedService:
    """What the audit agent keeps of one service.

    Attributes:
        partition: of the panes topic, where all of the service's summaries arrive.
        panes: what is folded.
        book: states of all alerts of the service.
        audit: windows and verdicts.
        slo: objectives and their budgets.
        link: where a person sees more; empty when there is no such place.
        newest: the newest records that came, with a sample; None before the first.
        cold: its cold windows.
        sources: source partitions that have sent something of the service.
        opened_ns: event time when it was opened; it counts until a source has records.
        seen: when it last sent something, or was opened, seconds of a growing clock.
        settled_ns: event time up to which everything is in ClickHouse; 0 before the first flush.
    """

    partition: int
    panes: PaneStore
    book: AlertBook
    audit: ServiceAudit
    slo: SloAudit
    link: str = ""
    newest: Summary | None = None
    cold: tuple[ColdWindow, ...] = ()
    opened_ns: int = 0
    sources: set[str] = field(default_factory=set)
    seen: float = 0.0
    settled_ns: int = 0

    def now_ns(
        self, watermarks: Mapping[str, int], heard: Mapping[str, float], since: float
    ) -> int:
        """Return event time: the least watermark of the sources that are not idle.

        Args:
            watermarks: newest event time of each source.
            heard: when each source last had records.
            since: a source that had none since then is idle.
        """
        live = [watermarks[s] for s in self.sources if heard.get(s, 0.0) >= since]
        if live:
            return min(live)
        return max((watermarks[s] for s in self.sources), default=self.opened_ns)

    def clock_ns(self, now_ns: int, heard: Mapping[str, float], now_s: float) -> int:
        """Return event time that goes on while no source has records, so that silence is noticed.

        A log that is replayed carries times of long ago; so it is not the clock on the wall.

        Args:
            now_ns: event time.
            heard: when each source last had records, seconds of a growing clock.
            now_s: now, by that clock.
        """
        newest_s = max((heard.get(source, 0.0) for source in self.sources), default=self.seen)
        return now_ns + int(max(now_s - newest_s, 0.0) * 1e9)

    def add(self, delta: Summary) -> None:
        """Add records that count for good, with their cohorts."""
        self.newest = delta
        self.audit.add(delta)
        self.slo.add(delta)

    def judge(
        self, now_ns: int, clock_ns: int, held: Sequence[Summary], explain: Explain
    ) -> list[Alert]:
        """Return the messages of the alerts that move now.

        Args:
            now_ns: event time.
            clock_ns: event time that goes on while all sources are silent.
            held: newer records on top of what was added.
            explain: what to say beside the figures.
        """
        self.newest = held[-1] if held else self.newest
        alerts = self.audit.judge(now_ns, held, explain, clock_ns=clock_ns, cold=self.cold)
        return alerts + self.slo.judge(clock_ns, held, explain)


async def open_service(
    name: str,
    partition: int,
    settings: Settings,
    store: ClickHouse,
    *,
    event_ns: int,
    mute: Mute = never,
) -> tuple[OwnedService, list[Alert]]:
    """Return a service that is new to this worker, and the alerts to publish again.

    Args:
        name: the service's name.
        partition: of the panes topic.
        settings: what it promises.
        store: what judging needs is read back from there.
        event_ns: event time.
        mute: why an alert is muted at a time.
    """
    pane_s = settings.stream.pane_s
    known = await retrying(lambda: asyncio.to_thread(store.newest_pane, name))
    book, again = await open_book(name, store, mute)
    audit = ServiceAudit(name, settings.service(name).slo, pane_s=pane_s, book=book)
    newest_ns = 0
    if known is not None:
        await restore(audit, store, newest_ns=known, event_ns=event_ns)
        newest_ns = 0 if replays(known, event_ns) else known
    slo = await open_slo_audit(book, settings, store, now_ns=event_ns, newest_ns=newest_ns)
    watched = {*audit.alerts, *slo.alerts}
    again += book.retire(watched, ("percentile", "burn", COLD_START), event_ns)
    panes = PaneStore(name, pane_s=pane_s, known_ns=known)
    link = _link(settings, name)
    opened = OwnedService(partition, panes, book, audit, slo, link=link, opened_ns=event_ns)
    return opened, again


def _link(settings: Settings, name: str) -> str:
    web = settings.web
    path = f"/services/{quote(name, safe='')}"
    return f"http://{web.host}:{web.port}{path}" if web.enabled else ""
