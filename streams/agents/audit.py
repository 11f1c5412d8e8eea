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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog
from faust.types import TP

from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.budgets import BudgetRow
from tailbudget.schemas.errors import UnavailableError
from tailbudget.schemas.rows import StoredPane
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
from tailbudget.streams.owned_partition import OwnedPartition, RevokedError, counted_of
from tailbudget.streams.owned_service import OwnedService
from tailbudget.streams.retrying import retrying
from tailbudget.streams.settling import settles_ns
from tailbudget.streams.silences import Silences
from tailbudget.streams.stalls import Standing

log = structlog.get_logger()

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
        anomalies: Anomalies,
        silences: Silences,
        report: Callable[[str], Report | None],
    ) -> None:
        self.written = 0
        self.flushes = FlushTimes()
        self.verdicts = NewestVerdicts()
        self._gone: Counter[str] = Counter()
        self._unwritten = 0
        self._settings = settings
        self._store = store
        self._consumer = consumer
        self._outbox = outbox
        self._incarnation = incarnation
        self._anomalies = anomalies
        self._report = report
        self._budgets: list[BudgetRow] = []
        self._opening = Opening(settings, store, outbox, silences)
        self._turn = asyncio.Lock()
        self._woken = False
        self._noticed = 0.0
        self._partitions: dict[int, OwnedPartition] = {}
        self._services: dict[str, OwnedService] = {}
        self._due: dict[str, None] = {}
        self._arrived: dict[str, float] = {}
        self._heard: dict[str, float] = {}
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
                with contextlib.suppress(RevokedError):
                    await self._take(partition, event.value)
            event.ack()
            self._moved.set()
            await self._room()

    async def _room(self) -> None:
        """Wait while more is unwritten than may be held: Faust pauses the partitions meanwhile."""
        while self._unwritten > self._settings.stream.max_pending_mb * 2**20:
            self._written.clear()
            await self._written.wait()

    def assign(self, partitions: Iterable[TP]) -> None:
        """Start these partitions of the panes topic at their committed offsets."""
        self._leave()
        self._partitions = {tp.partition: OwnedPartition(tp) for tp in partitions}
        self._woken = False
        self._ready.set()

    def revoke(self) -> None:
        """Forget everything: new owners read it from ClickHouse and the panes topic."""
        self._ready.clear()
        self._leave()
        self._anomalies.revoke()
        self._services.clear()
        self.verdicts.clear()
        self._due.clear()
        self._rolling.clear()
        self._budgets.clear()
        self._unwritten = 0
        self._written.set()

    def _leave(self) -> None:
        """Drop the partitions, and keep what was counted of them."""
        self._gone += counted_of(self._partitions.values())
        self._partitions.clear()

    async def wake(self) -> None:
        """Open services that send nothing but whose alerts wait, so that silence is noticed."""
        if self._woken or not self._partitions:
            return
        self._woken = True
        try:
            waiting = await self._opening.waiting()
        except UnavailableError as error:
            self._woken = False
            log.debug("services are woken later", error=error.message)
            return
        for name, number, newest_ns in waiting:
            partition = self._partitions.get(number)
            if partition is not None:
                with contextlib.suppress(RevokedError):
                    await self._open(name, partition, newest_ns)

    async def judge(self) -> None:
        """Judge the services that have news, as many as the share of time allows."""
        began = time.perf_counter()
        if time.monotonic() - self._noticed >= NOTICE_S:
            self._noticed = time.monotonic()
            self._due |= dict.fromkeys(self._services)
        while self._due and time.perf_counter() - began < JUDGE_SHARE:
            name = next(iter(self._due))
            del self._due[name]
            service = self._services[name]
            await self._judge(name, service)
            await asyncio.sleep(0)
        await self._outbox.drain()

    async def _judge(self, name: str, service: OwnedService) -> None:
        held = list(self._partitions[service.partition].assembly.held(name))
        now_ns = self._now_ns(service)
        for row in service.audit.rolling(now_ns, held):
            self._rolling.append(row)
            self.verdicts.note(row, time.monotonic())
            self._unwritten += len(row.payload)
        clock_ns = service.clock_ns(now_ns, self._heard, time.monotonic())
        alerts = service.judge(
            now_ns, clock_ns, held, lambda: explained(service, self._report(name))
        )
        self._budgets += service.slo.rows(clock_ns, held)
        await publish(alerts, self._store, self._outbox)

    async def flush(self) -> None:
        """Write what changed to ClickHouse, then let the panes topic be committed behind it."""
        async with self._flushing:
            services = list(self._services.values())
            size = self._unwritten
            rows = [
                row for service in services for row in service.panes.dirty(self._version(service))
            ]
            settling = [self._settles_ns(service) for service in services]
            audits, self._rolling = self._rolling, []
            budgets, self._budgets = self._budgets, []
            began_s = time.monotonic()
            try:
                await self._write(rows, audits, budgets)
            except BaseException:
                self._rolling = audits + self._rolling
                raise
            if rows or audits:
                self.flushes.add(time.monotonic() - began_s, at_s=time.time())
            for service, settled_ns in zip(services, settling, strict=True):
                service.panes.written()
                service.settled_ns = max(service.settled_ns, settled_ns)
            self.written += len(rows)
            self._unwritten = max(0, self._unwritten - size)
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

    @property
    def pending_bytes(self) -> int:
        """Bytes of summaries and audits that are not yet durable, those held included."""
        return self._unwritten + sum(
            partition.assembly.held_bytes + sum(one.size for one in partition.unfolded)
            for partition in self._partitions.values()
        )

    def settled(self) -> dict[str, int]:
        """Return event time up to which everything of an owned service is in ClickHouse."""
        return {name: one.settled_ns for name, one in self._services.items() if one.settled_ns}

    def owned(self, name: str) -> OwnedService | None:
        """Return a service; None when it is not ours."""
        return self._services.get(name)

    def event_ns(self, name: str) -> int | None:
        """Return event time of an owned service; None when it is not ours."""
        service = self._services.get(name)
        return None if service is None else self._now_ns(service)

    def current(self) -> list[dict[str, Any]]:
        """Return the newest verdicts that still hold."""
        return self.verdicts.current(self._services, time.monotonic())

    def status(self) -> dict[str, Any]:
        """Return what an operator wants to know, for `/status`."""
        owned = sorted(self._partitions.items())
        counted = self._gone + counted_of(self._partitions.values())
        return {
            "services": sorted(self._services),
            "alerts": self._alerts(),
            "taken": {str(n): p.next_offset for n, p in owned},
            "lag": {str(n): self._consumer().behind(p.tp, p.next_offset) for n, p in owned},
            "settled_ns": self.settled(),
            "due": len(self._due),
            "audits_unwritten": len(self._rolling),
            "pending_bytes": self.pending_bytes,
            "pending_limit_bytes": int(self._settings.stream.max_pending_mb * 2**20),
            "panes_written": self.written,
            **{name: counted[name] for name in ("foreign", "segments_dropped", "segments_ignored")},
        }

    def _alerts(self) -> dict[str, dict[str, str]]:
        """Return the states of the alerts that are not resolved, by service and name."""
        standing = {name: one.book.standing() for name, one in sorted(self._services.items())}
        return {name: states for name, states in standing.items() if states}

    async def _take(self, partition: OwnedPartition, messages: list[Any]) -> None:
        for raw in messages:
            if raw.offset < partition.next_offset:
                continue
            message = partition.receive(raw)
            if isinstance(message, protocol.Mark):
                self._arrived[message.source] = time.monotonic()
            elif message is not None:
                await self._touch(message, partition)
            partition.next_offset = raw.offset + 1
        for service, segments in partition.by_service().items():
            await self._fold(partition, service, segments)
        partition.unfolded.clear()

    async def _touch(self, message: protocol.Segment, partition: OwnedPartition) -> None:
        now = time.monotonic()
        spoken = {span.source: now for span in message.spans}
        self._arrived |= spoken
        self._heard |= spoken
        service = self._services.get(message.service)
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
            if (known := self._services.get(name)) is not None:
                return known
            service = await self._opening.open(name, partition.tp.partition, event_ns)
            await self._anomalies.open(name, partition.tp.partition)
            self._require(partition)
            service.seen = time.monotonic()
            self._services[name] = service
            return service

    def _require(self, partition: OwnedPartition) -> None:
        if self._partitions.get(partition.tp.partition) is not partition:
            raise RevokedError

    async def _fold(self, partition: OwnedPartition, name: str, folded: list[Folded]) -> None:
        service = self._services.get(name)
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
            self._require(partition)
            service.panes.load(missing, stored)
        for one in folded:
            self._unwritten += one.size
            self._anomalies.take(one)
            for delta in service.panes.fold(one):
                service.add(delta)
        self._due[name] = None

    async def _write(
        self, rows: list[StoredPane], audits: list[AuditRow], budgets: list[BudgetRow]
    ) -> None:
        if rows:
            await retrying(lambda: asyncio.to_thread(self._store.write_panes, rows))
        if audits:
            await retrying(lambda: asyncio.to_thread(self._store.write_audits, audits))
        if budgets:
            await retrying(lambda: asyncio.to_thread(self._store.write_budgets, budgets))

    def _version(self, service: OwnedService) -> int:
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
            floors.append(self._anomalies.floor(partition.tp.partition))
            self._consumer().advance(partition.tp, min(f for f in floors if f is not None))

    def _forget(self) -> None:
        margin_ns = int((self._settings.stream.grace_s + KEEP_S) * 1e9)
        idle = time.monotonic() - FORGET_S
        for name, service in list(self._services.items()):
            service.panes.evict(self._now_ns(service) - margin_ns)
            quiet = service.seen < idle and service.panes.floor() is None
            if quiet and self._anomalies.forget(name):
                del self._services[name]
                self._due.pop(name, None)

    def _now_ns(self, service: OwnedService) -> int:
        watermarks = self._partitions[service.partition].assembly.watermarks()
        since = time.monotonic() - self._settings.stream.idle_s
        return service.now_ns(watermarks, self._heard, since)

    def _settles_ns(self, service: OwnedService) -> int:
        closed_ns = self._now_ns(service) - int(self._settings.stream.grace_s * 1e9)
        return settles_ns(service, self._partitions[service.partition], closed_ns)

    def _current(self, generation: int) -> bool:
        return bool(self._consumer().app.consumer_generation_id == generation)
