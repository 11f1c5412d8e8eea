"""Publish bytes to Kafka: many records a message, nothing lost in silence."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import KafkaError, Producer

from tailbudget.schemas.errors import BrokerError
from tailbudget.streams.kafka import CLIENT_LOG, ClientConfig, await_broker
from tailbudget.streams.packing import PACK_BYTES, Pack, pack

MAX_MESSAGE_BYTES: Final = 16_000_000
_ALONE_BYTES: Final = 500_000
"""A batch is refused as a whole: what may be too large for the topic travels alone."""


class Publisher:
    """Writes to Kafka in the background; waits when its buffer is full; raises at the end.

    A message that could not be delivered is counted, and `flush` and `close` raise for it.
    Messages of one partition stay in their order.

    Attributes:
        delivered: messages that the broker acknowledged.
        undelivered: messages that it did not take.
        records: records inside the acknowledged messages.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        linger_ms: int = 50,
        timeout_s: float = 30.0,
        buffer_mb: int = 64,
    ) -> None:
        """Connect.

        Args:
            config: as `streams.kafka.client_config` returns it.
            linger_ms: how long to gather a batch; the embedded broker wants at least 50.
            timeout_s: how long to wait for the broker, at the start and for each message.
            buffer_mb: how much may wait for the broker before `send` waits too.

        Raises:
            BrokerError: no broker answers.
        """
        self._config = config
        self._partitions = await_broker(config, timeout_s=timeout_s)
        self._turn: dict[str, Iterator[int]] = {}
        self._timeout_s = timeout_s
        self._failures: dict[str, KafkaError] = {}
        self.delivered = self.undelivered = self.records = 0
        self._producer = Producer(
            {
                "acks": "all",
                "compression.type": "lz4",
                "linger.ms": linger_ms,
                # Without idempotence, which the embedded broker lacks, order needs one at a time.
                "max.in.flight.requests.per.connection": 1,
                "message.max.bytes": MAX_MESSAGE_BYTES,
                "delivery.timeout.ms": int(timeout_s * 1000),
                "queue.buffering.max.kbytes": buffer_mb * 1024,
                **config,
                "logger": CLIENT_LOG,
            }
        )

    def publish(
        self, topic: str, records: Iterable[tuple[bytes, int]], *, max_bytes: int = PACK_BYTES
    ) -> int:
        """Pack (record, timestamp_ms) pairs and send them, partition after partition in turn.

        Records must hold no newline. Returns how many there were. May block, as `send`.
        """
        count = 0
        for message in pack(records, max_bytes=max_bytes):
            self.send_pack(topic, message)
            count += message.records
        return count

    def send_pack(self, topic: str, message: Pack) -> None:
        """Send one pack to the partition whose turn it is. May block, as `send`."""
        self.send(
            topic,
            message.value,
            timestamp_ms=message.timestamp_ms,
            records=message.records,
            partition=self._next_partition(topic),
        )

    def send(
        self,
        topic: str,
        value: bytes,
        *,
        timestamp_ms: int | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        records: int = 1,
    ) -> None:
        """Send one message; without a timestamp it has the time of the call.

        Blocks while the buffer is full.

        Raises:
            BrokerError: the buffer stayed full for `timeout_s`.
        """
        alone = len(value) > _ALONE_BYTES
        if alone:
            self._producer.flush(self._timeout_s)
        arguments: dict[str, Any] = {"key": key, "on_delivery": self._on_delivery(topic, records)}
        if timestamp_ms is not None:
            arguments["timestamp"] = timestamp_ms
        if partition is not None:
            arguments["partition"] = partition
        self._produce(topic, value, arguments)
        self._producer.poll(0)
        if alone:
            self._producer.flush(self._timeout_s)

    def flush(self) -> None:
        """Wait until the broker has answered for everything that was sent.

        Raises:
            BrokerError: it did not take all of it, or did not answer.
        """
        waiting = self._producer.flush(self._timeout_s + 5.0)
        if waiting:
            raise self._lost(f"{waiting} messages are not acknowledged")
        if self.undelivered:
            causes = "; ".join(f"{topic}: {cause.str()}" for topic, cause in self._failures.items())
            raise self._lost(
                f"{self.undelivered} of {self.undelivered + self.delivered} messages"
                f" were not delivered ({causes})"
            )

    def close(self) -> None:
        """Flush; raises as `flush` does."""
        self.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._producer.flush(1.0)

    def _produce(self, topic: str, value: bytes, arguments: dict[str, Any]) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                self._producer.produce(topic, value, **arguments)
            except BufferError:
                if time.monotonic() > deadline:
                    raise self._lost("the send buffer is full and does not drain") from None
                self._producer.poll(0.1)
            else:
                return

    def _on_delivery(self, topic: str, records: int) -> Callable[[KafkaError | None, object], None]:
        def count(error: KafkaError | None, _message: object) -> None:
            if error is None:
                self.delivered += 1
                self.records += records
            else:
                self.undelivered += 1
                self._failures.setdefault(topic, error)

        return count

    def _next_partition(self, topic: str) -> int:
        if topic not in self._turn:
            if topic not in self._partitions:
                self._partitions = await_broker(self._config, timeout_s=self._timeout_s)
            if topic not in self._partitions:
                raise BrokerError(
                    f"topic {topic!r} does not exist on {self._config['bootstrap.servers']}",
                    remedy="start a worker, which creates it, or create it by hand",
                )
            self._turn[topic] = itertools.cycle(range(self._partitions[topic]))
        return next(self._turn[topic])

    def _lost(self, what: str) -> BrokerError:
        return BrokerError(
            f"Kafka at {self._config['bootstrap.servers']}: {what}",
            remedy="see whether the broker runs, the topic exists and takes messages of this size",
        )
