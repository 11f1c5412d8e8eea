"""Faust's Kafka transport with a batch as the unit of work.

Faust spends tens of microseconds on an event, so an event here is one poll of one partition:
its value is the list of that poll's messages and its offset is the last of them.
Agents, groups, flow control, commits and rebalances stay Faust's.

What may be committed is not derived from acknowledged events.
An agent says so itself, once a prefix of its input is durable, by `BatchConsumer.advance`;
Faust's commit timer commits it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from aiokafka.consumer import fetcher
from aiokafka.structs import OffsetAndMetadata
from faust.topics import Topic
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage

Message = Any
"""One raw Kafka message, with key, value, offset, timestamp, timestamp_type and checksum."""


class _BareRecords(fetcher.PartitionRecords):
    """Hands records on as they were parsed.

    aiokafka copies each into a ConsumerRecord of 12 fields, which costs more than parsing it; an
    event knows topic and partition already.
    """

    def _consumer_record(self, tp: Any, record: Message) -> Message:
        del tp
        return record


fetcher.PartitionRecords = _BareRecords


FETCH_WAIT_MS: Final = 50
"""How long the broker may hold a fetch back for want of data.

A broker has one fetch at a time from us, and a partition whose records are still being taken is
left out of it: while that fetch waits for the others, often idle, the busy partition waits too.
Faust's 1,500 ms would be added to the latency of an alert at each of its steps.
"""


class BatchTopic(Topic):
    """A topic whose events carry the raw messages of a poll; nothing is decoded one by one."""

    async def decode(self, message: Any, *, propagate: bool = False) -> Any:
        """Wrap the poll into an event as it is."""
        del propagate
        return self.app.create_event(None, message.value, None, message)


class _ConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread that fetches, with our patience in place of Faust's."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001 - Faust has no setting for it
        return consumer


class BatchConsumer(driver.Consumer):
    """Delivers polls, and commits what the agents declared durable.

    The next offset that may be committed is kept per partition and forgotten when the partition
    is assigned anew, so that a revoked partition is committed by nobody.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._durable: dict[TP, int] = {}

    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def getmany(  # Faust calls it with `timeout`
        self,
        timeout: float,  # noqa: ASYNC109
    ) -> AsyncIterator[tuple[TP, Any]]:
        """Yield one message a partition and poll, carrying all messages of that poll."""
        records, active = await self._wait_next_records(timeout)
        generation = self.app.consumer_generation_id
        if records is None or self.should_stop:
            return
        if not self.flow_active:
            await self.perform_seek()
            return
        for tp, messages in records.items():
            if not self.flow_active or self.app.consumer_generation_id != generation:
                return
            if messages and (active is None or tp in active or tp in self._buffered_partitions):
                yield tp, self._poll(tp, messages, generation)

    def _poll(self, tp: TP, messages: list[Message], generation: int) -> ConsumerMessage:
        last = messages[-1]
        self.app.monitor.track_tp_end_offset(tp, self.highwater(tp))
        return ConsumerMessage(
            tp.topic,
            tp.partition,
            last.offset,
            last.timestamp / 1000.0,
            last.timestamp_type,
            None,
            None,
            messages,
            last.checksum,
            0,
            0,
            tp,
            generation_id=generation,
        )

    def advance(self, tp: TP, offset: int) -> None:
        """Declare all messages below `offset` durable; the commit follows with the timer."""
        self._durable[tp] = max(offset, self._durable.get(tp, 0))

    def forget(self, partitions: Iterable[TP]) -> None:
        """Drop what was declared for partitions that are no longer ours."""
        for tp in partitions:
            self._durable.pop(tp, None)

    async def commit_now(self, offsets: Mapping[TP, int], generation: int) -> bool:
        """Commit these offsets at once; returns whether the group accepted them.

        False means that the partitions have been assigned anew since `generation`: whoever owns
        them now starts at the offset committed before.
        """
        if self.app.consumer_generation_id != generation:
            return False
        if not set(offsets) <= self.assignment():
            return False
        return bool(await self._thread.call_thread(self._commit_as, dict(offsets), generation))

    async def _commit_as(self, offsets: dict[TP, int], generation: int) -> bool:
        consumer = self._thread._ensure_consumer()  # noqa: SLF001
        if consumer._coordinator.generation != generation:  # noqa: SLF001
            return False
        wanted = {
            driver.ensure_aiokafka_TP(tp): OffsetAndMetadata(offset, "")
            for tp, offset in offsets.items()
        }
        try:
            await consumer.commit(wanted)
        except (driver.CommitFailedError, driver.IllegalStateError):
            return False
        return True

    async def committed(self, tp: TP) -> int | None:
        """Return the committed offset of a partition, None when there is none."""
        consumer = self._thread._ensure_consumer()  # noqa: SLF001
        offset = await self._thread.call_thread(consumer.committed, driver.ensure_aiokafka_TP(tp))
        return None if offset is None else int(offset)

    def ack(self, message: Any) -> bool:
        """Forget a delivered poll; commits do not depend on it."""
        self._unacked_messages.discard(message)
        return True

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[TP]:
        return (
            tp for tp in list(self._durable) if topics is None or tp in topics or tp.topic in topics
        )

    def _new_offset(self, tp: TP) -> int | None:
        return self._durable.get(tp)

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Keep no gaps: a poll's offset is its last message's, and commits are ours."""


class BatchTransport(driver.Transport):
    """Faust's aiokafka transport with `BatchConsumer`."""

    Consumer: ClassVar[Any] = BatchConsumer
