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
from typing import Any, Final

from faust.types import TP

from tailbudget.schemas.settings import Settings
from tailbudget.schemas.verdicts import Audit as Report
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams import protocol
from tailbudget.streams.alert_log import publish
from tailbudget.streams.anomalies import Anomalies
from tailbudget.streams.assembly import Folded
from tailbudget.streams.explaining import explained
from tailbudget.streams.flush_times import FlushTimes
from tailbudget.streams.newest_verdicts import NewestVerdicts
from tailbudget.streams.opening import Opening
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.owned import Owned
from tailbudget.streams.owned_partition import OwnedPartition, RevokedError
from tailbudget.streams.owned_service import OwnedService
from tailbudget.streams.retrying import retrying
from tailbudget.streams.silences import Silences
from tailbudget.streams.unwritten import Unwritten

JUDGE_SHARE: Final = 0.02
"""Seconds that one round of judging may take; services that remain are judged in the next."""

NOTICE_S: Final = 2.0
"""How often a service without news is judged all the same: time alone may move an alert."""

KEEP_S: Final = 10
"""How long a closed and durable pane stays in memory for late records."""

FORGET_S: Final = 7200.0
"""A service that sent nothing for so long is dropped from memory; its data are in ClickHouse."""

GONE_S: Final = 600.0
"""A source that no worker marked for so long no longer holds commits back."""


class Audit:
    """State of the audit agent over the panes partitions assigned to this worker.

    Attributes:
        written: panes written to ClickHouse.
        flushes: how long writing them took.
        verdicts: the newest of each service and window.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: ClickHouse,
        consumer: Callable[[], Any],
        outbox: Outbox,
        incarnation: int,
        owned: Owned,
        anomalies: Anomalies,
        silences: Silences,
        report: Callable[[str], Report | None],
    ) -> None:
        self.written = 0
        self.flushes = FlushTimes()
        self.verdicts = NewestVerdicts()
        self._owned = owned
        self._unwritten = Unwritten(store)
        self._settings = settings
        self._store = store
        self._consumer = consumer
        self._outbox = outbox
        self._incarnation = incarnation
        self._anomalies = anomalies
        self._report = report
        self._opening = Opening(settings, store, outbox, silences)
        self._turn = asyncio.Lock()
        self._woken = False
        self._noticed = 0.0
        self._due: dict[str, None] = {}
        self._ready = asyncio.Event()
        self._written = asyncio.Event()
        self._moved = asyncio.Event()
        self._flushing = asyncio.Lock()

    async def run(self, stream: Any) -> None:
        """Consume polls until the app stops."""
        async for event in stream.noack().events():
            await self._ready.wait()
            partition = self._owned.partitions.get(event.message.tp.partition)
            if partition is not None and self._current(event.message.generation_id):
                with contextlib.suppress(RevokedError):
                    await self._take(partition, event.value)
            event.ack()
            self._moved.set()
            await self._room()

    async def _room(self) -> None:
        """Wait while more is unwritten than may be held: Faust pauses the partitions meanwhile."""
        while self._unwritten.size > self._settings.stream.max_pending_mb * 2**20:
            self._written.clear()
            await self._written.wait()

    def assign(self, partitions: Iterable[TP]) -> None:
        """Start these partitions of the panes topic at their committed offsets."""
        self._owned.assign(partitions)
        self._woken = False
        self._ready.set()

    def revoke(self) -> None:
        """Forget everything: new owners read it from ClickHouse and the panes topic."""
        self._ready.clear()
        self._owned.leave()
        self._owned.services.clear()
        self._anomalies.revoke()
        self.verdicts.clear()
        self._due.clear()
        self._unwritten.clear()
        self._written.set()

    async def wake(self) -> None:
        """Open services that send nothing but whose alerts wait, so that silence is noticed."""
        if self._woken or not self._owned.partitions:
            return
        self._woken = True
        waiting = await self._opening.waiting()
        self._woken = self._woken and waiting is not None
        for name, number, newest_ns in waiting or ():
            partition = self._owned.partitions.get(number)
            if partition is not None:
                with contextlib.suppress(RevokedError):
                    await self._open(name, partition, newest_ns)

    async def judge(self) -> None:
        """Judge the services that have news, as many as the share of time allows."""
        began = time.perf_counter()
        if time.monotonic() - self._noticed >= NOTICE_S:
            self._noticed = time.monotonic()
            self._due |= dict.fromkeys(self._owned.services)
        while self._due and time.perf_counter() - began < JUDGE_SHARE:
            name = next(iter(self._due))
            del self._due[name]
            service = self._owned.services[name]
            await self._judge(name, service)
            await asyncio.sleep(0)
        await self._outbox.drain()

    async def _judge(self, name: str, service: OwnedService) -> None:
        held = list(self._owned.partitions[service.partition].assembly.held(name))
        now_ns = self._owned.now_ns(service)
        for row in service.audit.rolling(now_ns, held):
            self._unwritten.audit(row)
            self.verdicts.note(row, time.monotonic())
        clock_ns = service.clock_ns(now_ns, self._owned.heard, time.monotonic())
        alerts = service.judge(
            now_ns, clock_ns, held, lambda: explained(service, self._report(name))
        )
        self._unwritten.budgets += service.slo.rows(clock_ns, held)
        await publish(alerts, self._store, self._outbox)

    async def flush(self) -> None:
        """Write what changed to ClickHouse, then let the panes topic be committed behind it."""
        async with self._flushing:
            services = list(self._owned.services.values())
            rows = [
                row for service in services for row in service.panes.dirty(self._version(service))
            ]
            settling = [self._owned.settles_ns(service) for service in services]
            began_s = time.monotonic()
            if await self._unwritten.write(rows):
                self.flushes.add(time.monotonic() - began_s, at_s=time.time())
            for service, settled_ns in zip(services, settling, strict=True):
                service.panes.written()
                service.settled_ns = max(service.settled_ns, settled_ns)
            self.written += len(rows)
            self._written.set()
            self._advance()
            self._forget()

    async def reach(self, offsets: Mapping[int, int]) -> None:
        """Wait until what is ours of the panes topic is taken up to these offsets."""
        while not self._owned.has(offsets):
            self._moved.clear()
            await self._moved.wait()

    @property
    def pending_bytes(self) -> int:
        """Bytes of summaries and audits that are not yet durable, those held included."""
        return self._unwritten.size + self._owned.held_bytes()

    def status(self) -> dict[str, Any]:
        """Return what an operator wants to know, for `/status`."""
        return {
            **self._owned.status(self._consumer().behind),
            "due": len(self._due),
            "audits_unwritten": len(self._unwritten.audits),
            "pending_bytes": self.pending_bytes,
            "pending_limit_bytes": int(self._settings.stream.max_pending_mb * 2**20),
            "panes_written": self.written,
        }

    async def _take(self, partition: OwnedPartition, messages: list[Any]) -> None:
        for raw in messages:
            if raw.offset < partition.next_offset:
                continue
            message = partition.receive(raw)
            if isinstance(message, protocol.Mark):
                self._owned.arrived[message.source] = time.monotonic()
            elif message is not None:
                await self._touch(message, partition)
            partition.next_offset = raw.offset + 1
        for service, segments in partition.by_service().items():
            await self._fold(partition, service, segments)
        partition.unfolded.clear()

    async def _touch(self, message: protocol.Segment, partition: OwnedPartition) -> None:
        now = time.monotonic()
        spoken = {span.source: now for span in message.spans}
        self._owned.arrived |= spoken
        self._owned.heard |= spoken
        service = self._owned.services.get(message.service)
        if service is None:
            event_ns = min(span.watermark_ns for span in message.spans)
            service = await self._open(message.service, partition, event_ns)
        service.sources |= {span.source for span in message.spans}
        service.seen = now
        self._due[message.service] = None

    async def _open(self, name: str, partition: OwnedPartition, event_ns: int) -> OwnedService:
        """Return a service that is new to this worker; it may have been opened meanwhile.

        Raises:
            RevokedError: the partition is no longer ours.
        """
        async with self._turn:
            if (known := self._owned.services.get(name)) is not None:
                return known
            service = await self._opening.open(name, partition.tp.partition, event_ns)
            await self._anomalies.open(name, partition.tp.partition)
            self._owned.require(partition)
            service.seen = time.monotonic()
            self._owned.services[name] = service
            return service

    async def _fold(self, partition: OwnedPartition, name: str, folded: list[Folded]) -> None:
        service = self._owned.services.get(name)
        sources = {source for one in folded for source in one.ends}
        if service is None:
            watermarks = partition.assembly.watermarks()
            event_ns = min(watermarks[source] for source in sources)
            service = await self._open(name, partition, event_ns)
        service.sources |= sources
        if missing := service.panes.missing(folded):
            stored = await retrying(
                lambda: asyncio.to_thread(self._store.read_panes, name, missing)
            )
            self._owned.require(partition)
            service.panes.load(missing, stored)
        for one in folded:
            self._unwritten.size += one.size
            self._anomalies.take(one)
            for delta in service.panes.fold(one):
                service.add(delta)
        self._due[name] = None

    def _version(self, service: OwnedService) -> int:
        """Return a row version that grows with the panes topic, over its re-creations too."""
        return (self._incarnation << 40) | self._owned.partitions[service.partition].next_offset

    def _advance(self) -> None:
        now = time.monotonic()
        gone = {name for name, at in self._owned.arrived.items() if now - at > GONE_S}
        for partition in self._owned.partitions.values():
            floors = (
                self._owned.floor(partition, gone),
                self._anomalies.floor(partition.tp.partition),
            )
            self._consumer().advance(partition.tp, min(f for f in floors if f is not None))

    def _forget(self) -> None:
        idle = time.monotonic() - FORGET_S
        for name in self._owned.quiet(keep_s=KEEP_S, idle=idle):
            if self._anomalies.forget(name):
                del self._owned.services[name]
                self._due.pop(name, None)

    def _current(self, generation: int) -> bool:
        return bool(self._consumer().app.consumer_generation_id == generation)
