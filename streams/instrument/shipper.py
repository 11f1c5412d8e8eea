"""The thread that turns queued requests into messages, beside the service's own threads."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from tailbudget.streams.instrument import counters as why
from tailbudget.streams.instrument.counters import Counters
from tailbudget.streams.instrument.row import encode
from tailbudget.streams.instrument.sink import Finished
from tailbudget.streams.packing import PACK_BYTES, Pack, pack

LOG: Final = logging.getLogger("tailbudget.instrument")
CLIENT_LOG: Final = logging.getLogger("tailbudget.instrument.client")
"""What librdkafka itself says; silent unless logging is set up for it."""
CLIENT_LOG.addHandler(logging.NullHandler())

MAX_RECORD_BYTES: Final = 1_000_000
"""Readers reject what is longer (`max_record_bytes`), and brokers by default too."""

INTERVAL_S: Final = 0.1
_AT_ONCE: Final = 16
_PAUSE_S: Final = 0.0002
"""The interpreter lets a thread run for 5 ms while others wait; a request shall not wait so long
for us. So we let go after every few records, which take about 0.2 ms."""

_PURGE_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Target:
    """Where records go.

    Attributes:
        config: properties of librdkafka, complete.
        topic: the request topic.
        service: of records that name none; None leaves it to the topic's settings.
        flush_s: seconds that the end may wait for the broker.
    """

    config: Mapping[str, Any]
    topic: str
    service: str | None
    flush_s: float


class Shipper:
    """Takes records from a queue until it is told to stop, then waits for the broker, briefly."""

    def __init__(self, queue: deque[Finished], target: Target, counters: Counters) -> None:
        self._queue = queue
        self._target = target
        self._counters = counters
        self._in_hand = 0
        self._stop = Event()
        self._thread = Thread(target=self._run, name="tailbudget-instrument", daemon=True)
        self.client: Producer | None = None

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: the process may have no more threads, or is about to end.
        """
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Send what is queued, wait for the broker, end; return after `timeout_s` in any case."""
        self._stop.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            self._turn()
        self._turn()
        self._end()

    def _turn(self) -> None:
        try:
            self._ship()
        except Exception as error:  # noqa: BLE001 - counted and logged; the service goes on
            self._counters.last_error = repr(error)
            self._drop(why.FAILED, self._in_hand)
        report(self._counters, self._target)

    def _ship(self) -> None:
        """Send what is in the queue now, and hear what became of earlier messages."""
        if self.client is None:  # an idle client is false: it has the length of its queue
            self.client = self._connect()
        client = self.client
        now_ms = time.time_ns() // 1_000_000
        for message in pack(((line, now_ms) for line in self._lines()), max_bytes=PACK_BYTES):
            self._produce(client, message)
        client.poll(0)

    def _lines(self) -> Iterator[bytes]:
        for number in range(1, len(self._queue) + 1):
            record = self._queue.popleft()
            self._in_hand += 1
            self._counters.add("taken")
            line, lost = encode(record, self._target.service)
            if lost:
                self._counters.add("lost_columns", lost)
            if line is None:
                self._drop(why.NO_JSON)
            elif len(line) > MAX_RECORD_BYTES:
                self._drop(why.OVERSIZE)
            else:
                yield line
            if not number % _AT_ONCE:
                time.sleep(_PAUSE_S)

    def _produce(self, client: Producer, message: Pack) -> None:
        try:
            client.produce(
                self._target.topic, message.value, on_delivery=self._on_delivery(message.records)
            )
        except BufferError:
            self._drop(why.BUFFER, message.records)
        except KafkaException as error:
            self._counters.last_error = error.args[0].str()
            self._drop(why.UNDELIVERED, message.records)
        else:
            self._in_hand -= message.records

    def _on_delivery(self, records: int) -> Callable[[KafkaError | None, object], None]:
        def count(error: KafkaError | None, _message: object) -> None:
            if error is None:
                self._counters.add("delivered", records)
                self._counters.add("messages")
                self._counters.last_error = None
            else:
                self._counters.last_error = error.str()
                self._counters.drop(why.UNDELIVERED, records)

        return count

    def _drop(self, reason: str, records: int = 1) -> None:
        self._in_hand -= records
        self._counters.drop(reason, records)

    def _end(self) -> None:
        if self.client is None:
            return
        if self.client.flush(self._target.flush_s):
            self.client.purge()
            self.client.flush(_PURGE_S)
        report(self._counters, self._target)

    def _connect(self) -> Producer:
        return Producer({**self._target.config, "logger": CLIENT_LOG, "error_cb": self._on_error})

    def _on_error(self, error: KafkaError) -> None:
        self._counters.last_error = error.str()


def report(counters: Counters, target: Target) -> None:
    """Log each reason to drop records that has turned up since the last call."""
    for reason in counters.news():
        LOG.warning(
            "records of requests are dropped, the first of them now: %s (topic %s; Kafka: %s);"
            " later ones are counted in stats()",
            why.DROPS[reason],
            target.topic,
            counters.last_error,
        )
