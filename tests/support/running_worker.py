"""A real worker in a thread of the test, on a real broker and a real ClickHouse."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition

from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.delivery.agent import Channel
from tailbudget.streams.worker import Worker

PATIENCE_S = 40.0

GIVEN = os.environ.get("TAILBUDGET_TEST_BOOTSTRAP")
"""A broker to run on, instead of the embedded one."""


def settings_for(
    bootstrap: str, store: ClickHouse, data_dir: Path, **groups: Mapping[str, Any]
) -> Settings:
    """Return settings of a worker with topics of its own; `groups` are added to the defaults."""
    prefix = f"t{uuid4().hex[:10]}"
    values: dict[str, Any] = {
        "kafka": {
            "bootstrap": bootstrap,
            "prefix": prefix,
            "group": prefix,
            "partitions": 2,
            "session_timeout_s": 6.0 if GIVEN else 3.0,
            "heartbeat_s": 0.5,
            "contiguous": not GIVEN,
            "requests": [{"topic": f"{prefix}.requests", "service": "chat"}],
        },
        "clickhouse": {
            "interface": store.target.interface,
            "path": str(store.target.path),
            "database": store.target.database,
        },
        "data_dir": str(data_dir),
        "web": {"enabled": False},
        "stream": {"flush_s": 0.5},
    }
    for name, group in groups.items():
        values[name] = {**values.get(name, {}), **group}
    return Settings.model_validate(values)


class RunningWorker:
    """Runs a worker for as long as the context lasts, and talks to its topics.

    Attributes:
        settings: the worker's.
        store: the ClickHouse that it writes to.
        failure: what ended the worker, when it failed.
    """

    def __init__(
        self, settings: Settings, store: ClickHouse, channels: Sequence[Channel] = ()
    ) -> None:
        self.settings = settings
        self.store = store
        self.failure: BaseException | None = None
        self._channels = channels
        self._worker: Worker | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": settings.kafka.bootstrap,
                "linger.ms": 50,
                "message.max.bytes": 4_000_000,
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait_for(lambda: self.healthy() or self.failure is not None, "the worker to start")
        if self.failure is not None:
            self.stop()
            raise self.failure
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the worker in order."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the worker does not end"
        self._loop.close()

    def healthy(self) -> bool:
        """Return whether it has joined the group and owns partitions."""
        return self._worker is not None and bool(self.status()["healthy"])

    def status(self) -> dict[str, Any]:
        """Return what the worker tells of itself; asked on its loop, as its HTTP port asks."""
        worker = self._worker
        assert worker is not None
        if self._thread.is_alive():
            asked = asyncio.run_coroutine_threadsafe(_status(worker), self._loop)
            while self._thread.is_alive():
                with contextlib.suppress(TimeoutError):
                    return asked.result(0.5)
        return worker.status()

    @property
    def topic(self) -> str:
        """The first request topic."""
        return self.settings.kafka.requests[0].topic

    def produce(
        self,
        values: Sequence[bytes | None],
        *,
        topic: str | None = None,
        partition: int = 0,
        timestamps_ms: Sequence[int] | None = None,
        key: bytes | None = None,
    ) -> None:
        """Send messages to one partition, in order."""
        for index, value in enumerate(values):
            self._producer.produce(
                topic or self.topic,
                value,
                key=key,
                partition=partition,
                timestamp=timestamps_ms[index] if timestamps_ms else 0,
            )
        assert self._producer.flush(PATIENCE_S) == 0

    def query(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Ask ClickHouse."""
        return [tuple(row) for row in self.store.query(sql, parameters).rows]

    def ledger(self, service: str) -> dict[str, int]:
        """Return the service's ledger over all panes."""
        rows = self.query(
            "SELECT reason, sum(records) FROM ledger(window = 86400)"
            " WHERE service = {service:String} GROUP BY reason",
            service=service,
        )
        return {str(reason): int(n) for reason, n in rows}

    def requests(self, service: str) -> int:
        """Return how many accepted requests of the service ClickHouse has."""
        sql = (
            "SELECT sum(requests) FROM current_panes"
            " WHERE service = {service:String} AND stage = 'total'"
        )
        return int(self.query(sql, service=service)[0][0])

    def dead_letters(self) -> list[dict[str, Any]]:
        """Return the dead letters, the newest of each key."""
        found = dict(self.read(self.settings.kafka.dead_letters_topic))
        return [orjson.loads(value) for value in found.values()]

    def read(self, topic: str, quiet_s: float = 1.5) -> list[tuple[bytes, bytes]]:
        """Return key and value of all messages that a topic holds."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.settings.kafka.bootstrap,
                "group.id": f"read-{uuid4().hex}",
                "enable.auto.commit": False,
            }
        )
        partitions = consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        messages, since = [], time.monotonic()
        while time.monotonic() - since < quiet_s:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                messages.append((message.key(), message.value()))
                since = time.monotonic()
        consumer.close()
        return messages

    def committed(self, topic: str, partition: int) -> int:
        """Return the group's committed offset; below 0 when there is none."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.settings.kafka.bootstrap,
                "group.id": self.settings.kafka.group,
                "enable.auto.commit": False,
            }
        )
        found = consumer.committed([TopicPartition(topic, partition)], PATIENCE_S)
        consumer.close()
        return int(found[0].offset)

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until the condition holds; fail with `what` when it never does."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if self.failure is not None and self._worker is not None:
                raise self.failure
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self._tell()}"
            time.sleep(0.1)

    def _tell(self) -> object:
        return self._worker and self._worker.status()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # noqa: BLE001 (it is raised in the test's thread)
            self.failure = error

    async def _serve(self) -> None:
        self._worker = Worker(self.settings, self.store, self._channels)
        await self._worker.run_until(self._stop)


async def _status(worker: Worker) -> dict[str, Any]:
    return worker.status()
