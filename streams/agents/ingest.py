"""The ingest agent: request messages in, pane summaries out.

It gathers polls until they make a batch, decodes it and collects the columns of a source partition.
Every tick it closes the open segments: summarises those of a topic per service, publishes the
summaries and the dead letters, waits until the broker has them, and commits all ends at once.
Only then are the next segments sent, which is what `streams.protocol` builds on.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog
from faust.types import TP

from tailbudget.schemas import ledger
from tailbudget.schemas.records import NO_SERVICE, Decoded
from tailbudget.schemas.settings import Settings
from tailbudget.streams import protocol
from tailbudget.streams.dedup import Dedup
from tailbudget.streams.flush_times import FlushTimes
from tailbudget.streams.gathering import Gathering, Share
from tailbudget.streams.held_positions import Positions
from tailbudget.streams.holding import Holding
from tailbudget.streams.holes import HoleGuard
from tailbudget.streams.intake import Intake
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.proofs import Proofs
from tailbudget.streams.segment_ages import SegmentAges
from tailbudget.streams.segment_sender import Cut, SegmentSender
from tailbudget.streams.sources import HOLDING, Decoder
from tailbudget.streams.unknown_columns import UnknownColumns

log = structlog.get_logger()

BACKLOG_S: Final = 5.0
"""Records that waited longer than this are a backlog: latency is lost, throughput counts."""

BACKLOG_TICKS: Final = 20
"""A segment of a backlog lasts so many ticks, or `MAX_RECORDS`: a cohort costs less often."""

MAX_RECORDS: Final = 200_000
"""Accepted records kept in memory before the agent waits for the broker."""


class Ingest:
    """State of the ingest agent over the source partitions assigned to this worker.

    Args:
        settings: what is read, and how.
        consumer: Faust's.
        outbox: the way to our topics.
        decoders: how the messages of each topic are read.
        incarnations: which life of each topic we read.
        positions: where records that are held back begin.
        turn: held while summaries are made and sent, which no long work of the anomaly agent may
            slow down.

    Attributes:
        sources: the assigned source partitions.
        flushes: how long sending and committing took.
        records: what became of the records that this worker committed, by reason.
        dead_letters: those of them that went to the dead-letter topic, by reason.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        consumer: Callable[[], Any],
        outbox: Outbox,
        decoders: Mapping[str, Callable[[], Decoder]],
        incarnations: Mapping[str, int],
        positions: Positions,
        turn: asyncio.Lock,
    ) -> None:
        self.sources: dict[TP, Intake] = {}
        self.flushes = FlushTimes()
        self.records: Counter[str] = Counter()
        self.dead_letters: Counter[str] = Counter()
        self._ages = SegmentAges()
        self._settings = settings
        self._consumer = consumer
        self._outbox = outbox
        self._turn = turn
        self._decoders = decoders
        # One decoder for all partitions of a topic, unless it holds what came of one.
        holding = {entry.topic for entry in settings.kafka.requests if entry.format in HOLDING}
        self._common = {topic: make() for topic, make in decoders.items() if topic not in holding}
        self._incarnations = incarnations
        self._sender = SegmentSender(settings, outbox)
        self._proofs = Proofs()
        self._holes = HoleGuard(self._seek_back, self._accept_hole)
        self._holding = Holding(
            settings.stream,
            positions,
            self._seek_back,
            spans=any(entry.format in HOLDING for entry in settings.kafka.requests),
        )
        self._gathering = Gathering()
        self._ready = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._flushed_at = time.monotonic()
        self._arrived_s = 0.0
        self._unknown = UnknownColumns()

    async def run(self, stream: Any) -> None:
        """Consume polls until the app stops."""
        async for event in stream.noack().events():
            await self._ready.wait()
            await self._take(event.message.tp, event.value, event.message.generation_id)
            event.ack()
            if sum(source.records for source in self.sources.values()) >= MAX_RECORDS:
                await self.flush()
            await asyncio.sleep(0)

    async def tick(self) -> None:
        """Close the open segments when it is time; called every tick."""
        every_s = self._settings.stream.tick_s * (BACKLOG_TICKS if self._behind() else 1)
        if time.monotonic() - self._flushed_at >= every_s * 0.9:
            await self.flush()

    def _behind(self) -> bool:
        """Return whether old records are being read and more of them wait in the broker."""
        if time.time() - self._arrived_s <= BACKLOG_S:
            return False
        consumer = self._consumer()
        return any(
            consumer.waiting(tp, self._gathering.end(tp) or source.position)
            for tp, source in self.sources.items()
        )

    async def assign(self, partitions: Iterable[TP], generation: int) -> None:
        """Start the given sources at their committed offsets, and tell the audit agents so."""
        stream = self._settings.stream
        committed = {tp: await self._consumer().committed(tp) or 0 for tp in partitions}
        starts = await self._holding.starts(committed)
        for tp, start in committed.items():
            self.sources[tp] = Intake(
                key=protocol.source_key(tp.topic, tp.partition, self._incarnations[tp.topic]),
                generation=generation,
                committed=start,
                start=start,
                position=starts[tp],
                held_from=starts[tp],
                decoder=self._common.get(tp.topic) or self._decoders[tp.topic](),
                attempts=self._holding.attempts(),
                pane_ns=int(stream.pane_s * 1e9),
                grace_ns=int(stream.grace_s * 1e9),
                dedup=Dedup(stream.dedup),
            )
        before = {tp: at for tp, at in starts.items() if at < committed[tp]}
        await self._consumer().start_at(before)
        await self._mark(list(self.sources))
        await self._outbox.drain()
        self._ready.set()

    def revoke(self) -> None:
        """Forget all sources: what is not committed will be read again by their new owners."""
        self._ready.clear()
        self.sources.clear()
        self._proofs.clear()
        self._holes.clear()
        self._holding.clear()
        self._gathering.clear()
        self._ages.clear()

    def status(self) -> dict[str, Any]:
        """Return what an operator wants to know, for `/status`."""
        return {source.key: self._status(tp, source) for tp, source in self.sources.items()}

    def _status(self, tp: TP, source: Intake) -> dict[str, Any]:
        position = self._gathering.end(tp) or source.position
        return {
            **source.status(),
            "lag": self._consumer().behind(tp, position),
            "segment_age_s": self._ages.age_s(tp, time.monotonic()),
        }

    async def _take(self, tp: TP, messages: list[Any], generation: int) -> None:
        source = self.sources.get(tp)
        if source is None or source.generation != generation:
            return
        position = self._gathering.end(tp) or source.position
        fresh = messages
        if messages[0].offset < position:
            fresh = [message for message in messages if message.offset >= position]
        if source.position < source.start:
            fresh = await self._holding.replay(tp, source, fresh, source.decoder)
            position = source.position
        if fresh and self._settings.kafka.contiguous:
            fresh = await self._holes.prefix(tp, position, fresh)
        if not fresh or self.sources.get(tp) is not source:
            return
        self._arrived_s = fresh[-1].timestamp / 1000.0
        self._ages.take(tp, time.monotonic())
        if self._gathering.add(tp, fresh):
            self._decode(tp.topic)

    def _decode(self, topic: str) -> None:
        """Decode what waits of a topic."""
        gathered = self._gathering.take(topic, time.time_ns())
        if topic not in self._common:
            for share in gathered.shares:
                self._add(share, self.sources[share.tp].decoder.decode(gathered.of(share)))
            return
        decoded = self._common[topic].decode(gathered.batch)
        for share, mine in gathered.apart(decoded):
            self._add(share, mine)

    def _add(self, share: Share, decoded: Decoded) -> None:
        self._unknown.name(decoded.unknown)
        self.sources[share.tp].add(decoded, share.end)

    async def flush(self) -> None:
        """Publish and commit the open segments of all sources."""
        async with self._flushing:
            self._flushed_at = time.monotonic()
            for topic in self._gathering.topics:
                self._decode(topic)
            cut = {
                tp: (source, source.cut())
                for tp, source in self.sources.items()
                if not source.empty
            }
            self._ages.cut(cut)
            if cut:
                async with self._turn:
                    await self._sender.send(cut)
            if self._proofs.due:
                await self._holding.advance(self.sources)
            await self._mark(self._proofs.unproven(cut, self.sources))
            await self._outbox.drain()
            if cut:
                await self._holding.before_commit(cut)
                await self._commit(cut)
                took_s = time.monotonic() - self._flushed_at
                self.flushes.add(took_s, at_s=time.time())

    async def finish(self) -> Mapping[int, int]:
        """Flush, and prove all of it; return the last offset sent to each panes partition."""
        await self.flush()
        await self._mark(list(self.sources))
        await self._outbox.drain()
        return self.reached

    @property
    def waiting(self) -> int:
        """Messages that wait to be decoded."""
        return len(self._gathering)

    @property
    def reached(self) -> Mapping[int, int]:
        """The last offset that we sent to each panes partition."""
        return self._outbox.reached

    async def _commit(self, cut: Cut) -> None:
        """Commit the ends of these segments; sources that are no longer ours are dropped."""
        offsets = {tp: pending.end for tp, (_, pending) in cut.items()}
        generation = next(iter(cut.values()))[0].generation
        accepted = await self._consumer().commit_now(offsets, generation)
        self._ages.committed(cut)
        for tp, (source, pending) in cut.items():
            if accepted:
                source.committed, source.held_from = pending.end, pending.held_from
                self._proofs.committed(tp, pending.services)
                self.records.update(pending.reasons())
                self.dead_letters.update(one.reason for one in pending.rejected)
            elif self.sources.get(tp) is source:
                del self.sources[tp]
                self._gathering.forget(tp)

    async def _mark(self, partitions: Iterable[TP]) -> None:
        for tp in partitions:
            source = self.sources.get(tp)
            if source is None:
                continue
            mark = protocol.Mark(
                source.key, source.generation, source.committed, source.watermark_ns
            )
            await self._outbox.mark(protocol.encode(mark))

    async def _seek_back(self, tp: TP, offset: int) -> None:
        await self._consumer().seek(tp, offset)

    def _accept_hole(self, tp: TP, before: int) -> None:
        source = self.sources[tp]
        log.error("offsets are missing", source=source.key, before=before)
        source.count(self._default_service(tp), time.time_ns(), ledger.HOLE)

    def _default_service(self, tp: TP) -> str:
        for entry in self._settings.kafka.requests:
            if entry.topic == tp.topic and entry.service:
                return entry.service
        return NO_SERVICE
