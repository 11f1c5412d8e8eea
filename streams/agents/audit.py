"""The audit agent: owns a service whole, judges it, and keeps ClickHouse up to date.

It assembles the segments of all source partitions (`streams.assembly`), adds what counts for good
to the service's panes (`streams.pane_store`) and windows (`streams.service_audit`), and judges
with the newest, still unproven data on top. Panes are written every few seconds; the offset of
the panes topic is committed only behind what is durable.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import orjson
import structlog
from faust.types import TP

from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.errors import ReleaseError, WireError
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams import protocol
from tailbudget.streams.assembly import Assembly, Folded
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.pane_store import PaneStore
from tailbudget.streams.restore import restore
from tailbudget.streams.retrying import retrying
from tailbudget.streams.service_audit import ServiceAudit
from tailbudget.streams.stalls import Standing

log = structlog.get_logger()

JUDGE_SHARE: Final = 0.02
"""Seconds that one round of judging may take; services that remain are judged in the next."""

KEEP_S: Final = 10
"""How long a closed and durable pane stays in memory for late records."""

FORGET_S: Final = 7200.0
"""A service that sent nothing for so long is dropped from memory; its data are in ClickHouse."""


GONE_S: Final = 600.0
"""A source that no worker marked for so long no longer holds commits back."""


@dataclass(slots=True)
class _Service:
    partition: int
    panes: PaneStore
    audit: ServiceAudit
    sources: set[str] = field(default_factory=set)
    seen: float = 0.0


@dataclass(slots=True)
class _Partition:
    tp: TP
    assembly: Assembly = field(default_factory=Assembly)
    next_offset: int = 0
    unfolded: list[Folded] = field(default_factory=list)


class _RevokedError(Exception):
    """The partition went to another worker while we waited: what we were at is theirs."""


class Audit:
    """State of the audit agent over the panes partitions assigned to this worker.

    Attributes:
        pending_bytes: summaries and audits that are not yet durable.
        written: panes written to ClickHouse.
        foreign: messages of the panes topic that are not ours.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: ClickHouse,
        consumer: Callable[[], Any],
        outbox: Outbox,
        incarnation: int,
    ) -> None:
        self.pending_bytes = 0
        self.written = 0
        self.foreign = 0
        self._settings = settings
        self._store = store
        self._consumer = consumer
        self._outbox = outbox
        self._incarnation = incarnation
        self._partitions: dict[int, _Partition] = {}
        self._services: dict[str, _Service] = {}
        self._due: dict[str, None] = {}
        self._arrived: dict[str, float] = {}
        self._rolling: list[AuditRow] = []
        self._ready = asyncio.Event()
        self._written = asyncio.Event()
        self._moved = asyncio.Event()
        self._flushing = asyncio.Lock()

    async def run(self, stream: Any) -> None:
        """Consume polls until the app stops."""
        async for event in stream.noack().events():
            await self._ready.wait()
            partition = self._partitions.get(event.message.tp.partition)
            if partition is not None and self._current(event.message.generation_id):
                with contextlib.suppress(_RevokedError):
                    await self._take(partition, event.value)
            event.ack()
            self._moved.set()
            await self._room()

    async def _room(self) -> None:
        """Wait while more is unwritten than may be held: Faust pauses the partitions meanwhile."""
        while self.pending_bytes > self._settings.stream.max_pending_mb * 2**20:
            self._written.clear()
            await self._written.wait()

    def assign(self, partitions: Iterable[TP]) -> None:
        """Start these partitions of the panes topic at their committed offsets."""
        self._partitions = {tp.partition: _Partition(tp) for tp in partitions}
        self._ready.set()

    def revoke(self) -> None:
        """Forget everything: new owners read it from ClickHouse and the panes topic."""
        self._ready.clear()
        self._partitions.clear()
        self._services.clear()
        self._due.clear()
        self._rolling.clear()
        self.pending_bytes = 0
        self._written.set()

    async def judge(self) -> None:
        """Judge the services that have news, as many as the share of time allows."""
        began = time.perf_counter()
        while self._due and time.perf_counter() - began < JUDGE_SHARE:
            name = next(iter(self._due))
            del self._due[name]
            service = self._services[name]
            held = list(self._partitions[service.partition].assembly.held(name))
            now_ns = self._now_ns(service)
            for row in service.audit.rolling(now_ns, held):
                self._rolling.append(row)
                self.pending_bytes += len(row.payload)
            for payload in service.audit.judge(now_ns, held):
                await self._outbox.alert(name, orjson.dumps(payload))
        await self._outbox.drain()

    async def flush(self) -> None:
        """Write what changed to ClickHouse, then let the panes topic be committed behind it."""
        async with self._flushing:
            services = list(self._services.values())
            size = self.pending_bytes
            rows = [
                row for service in services for row in service.panes.dirty(self._version(service))
            ]
            audits, self._rolling = self._rolling, []
            try:
                await self._write(rows, audits)
            except BaseException:
                self._rolling = audits + self._rolling
                raise
            for service in services:
                service.panes.written()
            self.written += len(rows)
            self.pending_bytes = max(0, self.pending_bytes - size)
            self._written.set()
            self._advance()
            self._forget()

    def standings(self, ends: Mapping[int, int]) -> list[Standing]:
        """Return where each partition is read that was read from, given the last offsets known."""
        return [
            Standing(partition.tp, partition.next_offset, ends.get(number, -1) + 1)
            for number, partition in self._partitions.items()
            if partition.next_offset
        ]

    async def reach(self, offsets: Mapping[int, int]) -> None:
        """Wait until what is ours of the panes topic is taken up to these offsets."""
        while any(
            partition.next_offset <= offsets.get(number, -1)
            for number, partition in self._partitions.items()
        ):
            self._moved.clear()
            await self._moved.wait()

    def status(self) -> dict[str, Any]:
        """Return what an operator wants to know, for `/status`."""
        return {
            "services": sorted(self._services),
            "taken": {number: p.next_offset for number, p in sorted(self._partitions.items())},
            "pending_bytes": self.pending_bytes,
            "panes_written": self.written,
            "foreign": self.foreign,
            "segments_dropped": sum(p.assembly.dropped for p in self._partitions.values()),
            "segments_ignored": sum(p.assembly.ignored for p in self._partitions.values()),
        }

    async def _take(self, partition: _Partition, messages: list[Any]) -> None:
        for raw in messages:
            if raw.offset < partition.next_offset:
                continue
            message = self._receive(partition, raw)
            if message is not None:
                self._arrived[message.source] = time.monotonic()
            if isinstance(message, protocol.Segment):
                self.pending_bytes += len(message.body)
                await self._touch(message, partition)
            partition.next_offset = raw.offset + 1
        for service, segments in _by_service(partition.unfolded).items():
            await self._fold(partition, service, segments)
        partition.unfolded.clear()

    def _receive(self, partition: _Partition, raw: Any) -> protocol.Segment | protocol.Mark | None:
        """Return the message, and note what it proves; None when it is not ours.

        Raises:
            ReleaseError: another release wrote it; skipping it would lose records.
        """
        place = f"{partition.tp.topic}, partition {partition.tp.partition}, offset {raw.offset}"
        try:
            message = protocol.decode(raw.value)
            partition.unfolded += partition.assembly.receive(raw.offset, message)
        except ReleaseError as error:
            raise ReleaseError(f"{place}: {error.message}", remedy=error.remedy) from error
        except WireError as error:
            self.foreign += 1
            log.warning("foreign message", at=place, error=error.message, remedy=error.remedy)
            return None
        return message

    async def _touch(self, message: protocol.Segment, partition: _Partition) -> None:
        service = self._services.get(message.service)
        if service is None:
            service = await self._open(message.service, partition, message.watermark_ns)
            self._services[message.service] = service
        service.sources.add(message.source)
        service.seen = time.monotonic()
        self._due[message.service] = None

    async def _open(self, name: str, partition: _Partition, event_ns: int) -> _Service:
        """Return a service that is new to this worker, with what judging needs read back.

        Raises:
            _RevokedError: the partition is no longer ours.
        """
        pane_s = self._settings.stream.pane_s
        known = await retrying(lambda: asyncio.to_thread(self._store.newest_pane, name))
        web = self._settings.web
        link = f"http://{web.host}:{web.port}/services/{quote(name, safe='')}"
        slo = self._settings.service(name).slo
        audit = ServiceAudit(name, slo, pane_s=pane_s, link=link if web.enabled else "")
        if known is not None:
            await restore(audit, self._store, newest_ns=known, event_ns=event_ns)
        self._require(partition)
        number = partition.tp.partition
        return _Service(number, PaneStore(name, pane_s=pane_s, known_ns=known), audit)

    def _require(self, partition: _Partition) -> None:
        if self._partitions.get(partition.tp.partition) is not partition:
            raise _RevokedError

    async def _fold(self, partition: _Partition, name: str, folded: list[Folded]) -> None:
        service = self._services.get(name)
        if service is None:
            watermarks = partition.assembly.watermarks()
            event_ns = min(watermarks[one.source] for one in folded)
            service = await self._open(name, partition, event_ns)
            self._services[name] = service
            service.sources |= {one.source for one in folded}
        if missing := service.panes.missing(folded):
            stored = await retrying(
                lambda: asyncio.to_thread(self._store.read_panes, name, missing)
            )
            self._require(partition)
            service.panes.load(missing, stored)
        for one in folded:
            for delta in service.panes.fold(one):
                service.audit.add(delta)
        self._due[name] = None

    async def _write(self, rows: list[StoredPane], audits: list[AuditRow]) -> None:
        if rows:
            await retrying(lambda: asyncio.to_thread(self._store.write_panes, rows))
        if audits:
            await retrying(lambda: asyncio.to_thread(self._store.write_audits, audits))

    def _version(self, service: _Service) -> int:
        """Return a row version that grows with the panes topic, over its re-creations too."""
        return (self._incarnation << 40) | self._partitions[service.partition].next_offset

    def _advance(self) -> None:
        now = time.monotonic()
        gone = {name for name, at in self._arrived.items() if now - at > GONE_S}
        for partition in self._partitions.values():
            floors = [
                service.panes.floor()
                for service in self._services.values()
                if service.partition == partition.tp.partition
            ]
            floors += [segment.offset for segment in partition.unfolded]
            floors += [partition.assembly.floor(gone), partition.next_offset]
            self._consumer().advance(partition.tp, min(f for f in floors if f is not None))

    def _forget(self) -> None:
        margin_ns = int((self._settings.stream.grace_s + KEEP_S) * 1e9)
        idle = time.monotonic() - FORGET_S
        for name, service in list(self._services.items()):
            service.panes.evict(self._now_ns(service) - margin_ns)
            if service.seen < idle and service.panes.floor() is None:
                del self._services[name]
                self._due.pop(name, None)

    def _now_ns(self, service: _Service) -> int:
        """Return event time: the least watermark of the service's sources that are not idle."""
        watermarks = self._partitions[service.partition].assembly.watermarks()
        alive = time.monotonic() - self._settings.stream.idle_s
        live = [watermarks[s] for s in service.sources if self._arrived.get(s, 0.0) >= alive]
        return min(live) if live else max(watermarks[s] for s in service.sources)

    def _current(self, generation: int) -> bool:
        return bool(self._consumer().app.consumer_generation_id == generation)


def _by_service(folded: Iterable[Folded]) -> Mapping[str, list[Folded]]:
    services: dict[str, list[Folded]] = {}
    for one in folded:
        services.setdefault(one.service, []).append(one)
    return services
