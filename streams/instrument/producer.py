"""The sink of a live service: records to Kafka, and never a request that waits for them."""

from __future__ import annotations

import atexit
import os
import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from threading import RLock
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.instrument import counters as why
from tailbudget.streams.instrument.counters import Counters, ProducerStats
from tailbudget.streams.instrument.sampling import Sampling
from tailbudget.streams.instrument.shipper import CLIENT_LOG, Shipper, Target, report
from tailbudget.streams.instrument.sink import Finished

TOPIC: Final = "tailbudget.requests"

KAFKA_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "linger.ms": 50,
        "compression.type": "lz4",
        "message.timeout.ms": 30_000,
        "queue.buffering.max.kbytes": 16 * 1024,
        # Packed messages are few and large: what fills first shall be the bytes.
        "queue.buffering.max.messages": 10_000,
    }
)
"""Properties of librdkafka that hold unless the service gives others."""

_EVERY: Final[weakref.WeakSet[RecordProducer]] = weakref.WeakSet()

_OF_PARENTS: Final[list[Shipper]] = []
"""Kept, for to destroy a client waits for its threads, which a fork does not copy."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a producer may hold, and how long it may take at the end.

    Attributes:
        queue: records that may wait for the thread.
        flush_s: seconds that `close`, and with it the end of the process, may wait for the broker.
    """

    queue: int = 10_000
    flush_s: float = 2.0


class RecordProducer:
    """Sends the records of finished requests to Kafka, from a thread of its own.

    `send` appends to a queue and returns: no system call, no JSON, no waiting. Where the queue is
    full, the broker away or the record unusable, the record is dropped and counted, and the first
    drop for each reason is logged. Neither the thread nor the connection exist before the first
    record, so a server may make its producer before it forks; a child begins anew.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        topic: str = TOPIC,
        service: str | None = None,
        sampling: Sampling | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Check the settings; connect to nothing yet.

        Args:
            config: properties of librdkafka, such as {"bootstrap.servers": "kafka:9092"}.
            topic: the request topic; it must exist, unless the broker makes topics by itself.
            service: of records that name none; None leaves it to the topic's settings.
            sampling: which requests make a record; None: all.
            limits: how much it may hold, and how long it may take at the end.

        Raises:
            ConfigError: librdkafka refuses the properties.
        """
        self._limits = limits or Limits()
        self._sampling = sampling or Sampling()
        properties = {**KAFKA_DEFAULTS, **config}
        _check(properties)
        self._target = Target(properties, topic, service, self._limits.flush_s)
        self._counters = Counters()
        self._queue: deque[Finished] = deque()
        self._shipper: Shipper | None = None
        self._closed = False
        self._starting = RLock()
        _EVERY.add(self)
        atexit.register(self.close)

    def send(self, record: Finished) -> None:
        """Take a record, or drop and count it; neither waits nor raises."""
        sampling = self._sampling
        if sampling.one_in != 1:
            weight = sampling.weight(record)
            if not weight:
                self._counters.add("sampled_out")
                return
            record = record._replace(weight=weight)
        if self._closed:
            self._counters.drop(why.CLOSED)
            report(self._counters, self._target)
        elif len(self._queue) >= self._limits.queue:
            self._counters.drop(why.FULL)
        else:
            self._queue.append(record)
            if self._shipper is None:
                self._start()

    def stats(self) -> ProducerStats:
        """Return what became of the records so far."""
        return self._counters.stats(len(self._queue))

    def close(self) -> None:
        """Send what is left and wait for the broker, for `limits.flush_s` at most.

        What is not delivered by then is dropped and counted. Runs at the end of the process too,
        unless a signal kills it. Does nothing the second time.
        """
        with self._starting:
            atexit.unregister(self.close)
            self._closed = True
            shipper = self._shipper
        if shipper is not None:
            shipper.stop(self._limits.flush_s + _GRACE_S)

    def _start(self) -> None:
        with self._starting:
            if self._shipper is not None or self._closed:
                return
            shipper = Shipper(self._queue, self._target, self._counters)
            try:
                shipper.start()
            except RuntimeError:
                return  # No thread now: the record stays queued, and the next one tries again.
            self._shipper = shipper

    def _begin_anew(self) -> None:
        """Forget what belongs to the parent process: its thread, connection, queue and counts."""
        if self._shipper is not None:
            _OF_PARENTS.append(self._shipper)
        self._shipper = None
        self._starting = RLock()
        self._queue.clear()
        self._counters.restart()


_GRACE_S: Final = 1.0
"""For the queue, before the wait for the broker begins."""


def _check(properties: Mapping[str, Any]) -> None:
    try:
        Producer({**properties, "logger": CLIENT_LOG})
    except KafkaException as error:
        raise ConfigError(
            f"the Kafka client refuses its settings: {error.args[0].str()}",
            remedy="correct the properties that the producer is given",
        ) from error


def _after_fork() -> None:
    for producer in _EVERY:
        producer._begin_anew()  # noqa: SLF001 - of this module


os.register_at_fork(after_in_child=_after_fork)
