"""Faust's Kafka transport with a batch as the unit of work.

Faust spends tens of microseconds on an event, so an event here is one poll of one partition:
its value is the list of that poll's messages and its offset is the last of them.
Agents, groups, flow control, commits and rebalances stay Faust's.

What may be committed is not derived from acknowledged events.
An agent says so itself, once a prefix of its input is durable, by `BatchConsumer.advance`;
Faust's commit timer commits it.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, cast

from aiokafka.consumer import fetcher
from aiokafka.errors import UnsupportedCodecError
from aiokafka.structs import OffsetAndMetadata
from faust.exceptions import ConsumerNotStarted
from faust.topics import Topic
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from faust.types.tuples import ConsumerMessage

from tailbudget.schemas.errors import BrokerError
from tailbudget.streams.connecting import PatientConsumerThread, PatientProducer

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


WAITING_POLLS: Final = 4
"""Polls that may wait for an agent; its partitions are not fetched from while that many do."""


class BatchTopic(Topic):
    """A topic whose events carry the raw messages of a poll; nothing is decoded one by one."""

    async def decode(self, message: Any, *, propagate: bool = False) -> Any:
        """Wrap the poll into an event as it is."""
        del propagate
        return self.app.create_event(None, message.value, None, message)


class BatchConsumer(driver.Consumer):
    """Delivers polls, and commits what the agents declared durable.

    The next offset that may be committed is kept per partition and forgotten when the partition
    is assigned anew, so that a revoked partition is committed by nobody.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._durable: dict[TP, int] = {}
        self._starts: Mapping[TP, int] = {}

    def _new_consumer_thread(self) -> Any:
        return PatientConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def refusal(self) -> BaseException | None:
        """Return why the group does not take us, None while it does or nothing is known.

        Faust never asks: it would wait for an assignment for ever.
        """
        coordinator = getattr(self._thread and self._thread._consumer, "_coordinator", None)  # noqa: SLF001
        if coordinator is None:
            return None
        task = coordinator._coordination_task  # noqa: SLF001
        if task.done() and not task.cancelled() and task.exception() is not None:
            return cast(BaseException, task.exception())
        return cast(BaseException | None, coordinator._pending_exception)  # noqa: SLF001

    async def getmany(  # Faust calls it with `timeout`
        self,
        timeout: float,  # noqa: ASYNC109
    ) -> AsyncIterator[tuple[TP, Any]]:
        """Yield one message a partition and poll, carrying all messages of that poll.

        A partition that is taken away meanwhile ends the poll: its next owner, or we again, start
        at the committed offset.
        """
        try:
            records, active = await self._wait_next_records(timeout)
        except driver.ConsumerStoppedError:
            raise
        except driver.IllegalStateError:
            return
        except driver.KafkaError as error:
            await self.app.fail(self._unreadable(error))
            return
        generation = self.app.consumer_generation_id
        if records is None or self.should_stop:
            return
        if not self.flow_active:
            with contextlib.suppress(driver.IllegalStateError):
                await self.perform_seek()
            return
        for tp, messages in records.items():
            if not self.flow_active or self.app.consumer_generation_id != generation:
                return
            if messages and (active is None or tp in active or tp in self._buffered_partitions):
                yield tp, self._poll(tp, messages, generation)

    async def _getmany(self, active_partitions: set[TP], timeout: float) -> Any:  # noqa: ASYNC109
        """Leave out the partitions of agents that have enough to do.

        Faust's own limit stops all agents when the queue of one is full: one that waits for
        ClickHouse, or for a chat channel, would stop the others.
        """
        wanted = {tp for tp in active_partitions if not self._crowded(tp)}
        if not wanted:
            await self.sleep(0.05)
            return {}
        return await super()._getmany(active_partitions=wanted, timeout=timeout)

    def _crowded(self, tp: TP) -> bool:
        channels = self.app.topics._tp_index.get(tp, ())  # noqa: SLF001
        return any(channel.queue.qsize() >= WAITING_POLLS for channel in channels)

    def _unreadable(self, error: BaseException) -> BrokerError:
        """Return an error that names the partition whose messages could not be unpacked."""
        fetched = self._thread._ensure_consumer()._fetcher._records  # noqa: SLF001
        places = [tp for tp, result in fetched.items() if _broken(result)]
        where = ", ".join(f"topic {tp.topic}, partition {tp.partition}" for tp in places)
        remedy = "see the log above and the broker's; nothing was committed beyond what counts"
        if isinstance(error, UnsupportedCodecError):
            remedy = "pip install --force-reinstall cramjam, which unpacks snappy, lz4 and zstd"
        return BrokerError(f"cannot read {where or 'from the broker'}: {error}", remedy=remedy)

    def _poll(self, tp: TP, messages: list[Message], generation: int) -> ConsumerMessage:
        last = messages[-1]
        with contextlib.suppress(driver.IllegalStateError):
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

    def waiting(self, tp: TP, position: int) -> bool:
        """Return whether the broker had messages from `position` on when it was last asked."""
        return bool(self.behind(tp, position))

    def behind(self, tp: TP, position: int) -> int | None:
        """Return how many messages from `position` on the broker had when it was last asked.

        None: it has not been asked yet, the partition is not ours, or we have left the group.
        """
        try:
            end = self.highwater(tp)
        except (driver.IllegalStateError, ConsumerNotStarted):
            return None
        return None if end is None else max(end - position, 0)

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
        except driver.KafkaError as error:
            raise BrokerError(
                f"the broker did not take a commit of {', '.join(map(str, offsets))}: {error}",
                remedy="look at the broker's health and the rights of the group; what was not"
                " committed is read again",
            ) from error
        return True

    async def committed(self, tp: TP) -> int | None:
        """Return the committed offset of a partition, None when there is none."""
        consumer = self._thread._ensure_consumer()  # noqa: SLF001
        offset = await self._thread.call_thread(consumer.committed, driver.ensure_aiokafka_TP(tp))
        return None if offset is None else int(offset)

    async def start_at(self, offsets: Mapping[TP, int]) -> None:
        """Read these partitions from offsets before the committed ones, until the next call.

        Faust seeks to the committed offsets at some time after an assignment, or has done so.
        """
        self._starts = dict(offsets)
        await self._seek_starts()

    async def perform_seek(self) -> None:
        """Seek to the committed offsets, or where an agent wants to start."""
        await super().perform_seek()
        await self._seek_starts()

    async def _seek_starts(self) -> None:
        mine = self.assignment()
        for tp, offset in self._starts.items():
            if tp in mine:
                await self.seek(tp, offset)

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
    """Faust's aiokafka transport with `BatchConsumer`, and patience when it connects."""

    Consumer: ClassVar[Any] = BatchConsumer
    Producer: ClassVar[Any] = PatientProducer


def _broken(result: Any) -> bool:
    """Say whether unpacking ended in an error: the driver would skip the rest in silence."""
    records = getattr(getattr(result, "_partition_records", None), "_records_iterator", None)
    return records is not None and inspect.getgeneratorstate(records) == inspect.GEN_CLOSED
