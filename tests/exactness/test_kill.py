"""Workers die by SIGKILL at random moments; every record is still counted exactly once.

Two workers share the group and ClickHouse. Each kill makes the group rebalance, and the dead
worker is replaced at once. At the end ClickHouse must hold each accepted record once, and the
dead-letter topic each rejected one once by its source offset.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import orjson
import pytest
from clickhouse_server import ClickHouseServer
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from fleet import BOOTSTRAP, PARTITIONS, Fleet, settings_file

from tailbudget.schemas.settings import Settings, load
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.topics import ensure_topics

RECORDS = 200_000
KILLS = 20
PATIENCE_S = 180.0
SEED = 20260302

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(BOOTSTRAP is None, reason="needs TAILBUDGET_TEST_BOOTSTRAP"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ClickHouseServer]:
    """A ClickHouse that several processes can reach."""
    with ClickHouseServer(tmp_path / "clickhouse") as running:
        yield running


class Feed:
    """Produces records and rubbish, and remembers where the broker put the rubbish."""

    def __init__(self, topic: str, rng: random.Random) -> None:
        self.rejected: set[tuple[int, int]] = set()
        self.accepted = 0
        self._topic = topic
        self._rng = rng
        self._sent = 0
        self._began_ms = int(time.time() * 1000)
        self._producer = Producer({"bootstrap.servers": BOOTSTRAP, "linger.ms": 20})

    def send(self, count: int) -> None:
        """Produce some more messages, one in a hundred of them no record."""
        for _ in range(count):
            if self._rng.random() < 0.01:
                self._producer.produce(
                    self._topic, b"no record %d" % self._sent, on_delivery=self._note
                )
            else:
                self._producer.produce(self._topic, self._record())
                self.accepted += 1
            self._sent += 1
            self._producer.poll(0)

    def finish(self) -> None:
        """Wait until the broker has all."""
        assert self._producer.flush(60) == 0

    def _note(self, error: object, message: Message) -> None:
        assert error is None
        self.rejected.add((message.partition(), message.offset()))

    def _record(self) -> bytes:
        return orjson.dumps(
            {
                "request_id": f"r{self._sent}",
                "timestamp": int(time.time() * 1000),
                "total_ms": 7,
                "model_ms": 5,
                "route": "abc"[self._sent % 3],
                "sequence_length": self._sent % 100,
                "status": 200,
            }
        )


def dead_letters(topic: str) -> list[bytes]:
    """Return the keys of all dead letters."""
    consumer = Consumer(
        {"bootstrap.servers": BOOTSTRAP, "group.id": uuid4().hex, "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(PARTITIONS)])
    keys: list[bytes] = []
    quiet = time.monotonic()
    while time.monotonic() - quiet < 5:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            keys.append(message.key())
            quiet = time.monotonic()
    consumer.close()
    return keys


def wait_for(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.5)


def test_killing_workers_loses_and_doubles_nothing(
    server: ClickHouseServer, tmp_path: Path
) -> None:
    """Twenty kills over 200,000 records of two workers leave each counted once."""
    rng = random.Random(SEED)  # noqa: S311 (reproducible, not secret)
    config = settings_file(tmp_path, server)
    settings: Settings = load(config, {})
    ensure_topics(settings.kafka)
    with ExitStack() as stack:
        store = ClickHouse.open(server.target(settings.clickhouse.database))
        stack.callback(store.close)
        store.migrate()
        fleet = Fleet(config, tmp_path)
        stack.callback(fleet.stop)
        feed = Feed(settings.kafka.requests[0].topic, rng)
        rounds = KILLS * 4
        for number in range(rounds):
            feed.send(RECORDS // rounds)
            time.sleep(rng.uniform(0.5, 2.5))
            if number % 4 == 3:
                fleet.kill(rng.randrange(2))
        feed.finish()

        def counted() -> int:
            sql = "SELECT sum(requests) FROM current_panes WHERE stage = 'total'"
            return int(store.query(sql).rows[0][0])

        wait_for(
            lambda: counted() >= feed.accepted,
            lambda: f"{counted()} of {feed.accepted} records counted\n{fleet.logs()}",
        )
        wait_for(fleet.ready, fleet.logs)
        assert fleet.stop() == [0, 0], fleet.logs()
        assert counted() == feed.accepted
        sums = store.query(
            "SELECT stage, sum(n), sum(sum_ns) FROM current_panes"
            " WHERE stage IN ('total', 'model') GROUP BY stage ORDER BY stage"
        )
        n = feed.accepted
        assert [tuple(row) for row in sums.rows] == [
            ("model", n, n * 5_000_000),
            ("total", n, n * 7_000_000),
        ]
        letters = dead_letters(settings.kafka.dead_letters_topic)
        by_offset = {tuple(map(int, key.split(b":")[1:4:2])) for key in letters}
        assert by_offset == feed.rejected
        assert len(set(letters)) == len(feed.rejected)
