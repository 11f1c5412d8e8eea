"""Joining the group, sharing its partitions, lag, and what others write on our own topics."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiokafka.client
import orjson
import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import GroupAuthorizationFailedError, KafkaConnectionError
from running_worker import RunningWorker, settings_for

from tailbudget.schemas.errors import BrokerError, ReleaseError
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams import protocol
from tailbudget.streams.kafka import admin, kafka_config
from tailbudget.streams.lag import PartitionLag, collect
from tailbudget.streams.topics import ensure_topics

Start = Callable[..., RunningWorker]

T0_MS = 1_772_445_600_000  # 2026-03-02T10:00:00Z
pytestmark = pytest.mark.thorough

FOREIGN = (
    b"",
    b"hello",
    None,
    b"TP\x02\xff\xff\xff\x7f",
    b"TP\x02\x02\x00\x00\x00[]",
    protocol.encode(protocol.Mark("a:0:1", 1, 0, 0)).replace(b'"start":0', b'"start":{}'),
    protocol.encode(
        protocol.Segment((protocol.Span("a:0:1", 0, 1, 0),), 1, 0, 1, "chat", b"no summary")
    ),
)


def requests(first: int, count: int) -> list[bytes]:
    """Return requests of one second."""
    return [
        orjson.dumps({"request_id": str(n), "timestamp": T0_MS + n, "total_ms": 50.0})
        for n in range(first, first + count)
    ]


def assigned(worker: RunningWorker) -> list[str]:
    """Return the partitions that a worker says are its own."""
    return [str(name) for name in worker.status()["assigned"]]


def lags(worker: RunningWorker) -> dict[int, PartitionLag]:
    """Return where the group is in each partition of the request topic."""
    kafka = worker.settings.kafka
    found = collect(admin(kafka_config(kafka)), kafka.group, {worker.topic: kafka.partitions})
    return {each.partition: each for each in found}


def test_a_group_that_refuses_ends_the_worker(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join that can never succeed is an error with the group's name, not an idle worker."""

    async def refuse(*_: object) -> None:
        raise GroupAuthorizationFailedError("no")

    monkeypatch.setattr(GroupCoordinator, "ensure_active_group", refuse)
    with pytest.raises(BrokerError, match=r"consumer group t\w+ at .*GroupAuthorizationFailed"):
        start()


@pytest.mark.parametrize("fails", [1, 2])
def test_a_broker_that_misses_the_first_try_is_tried_again(
    start: Start, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    """Neither the producer nor the consumer gives up at once."""
    tries: list[object] = []
    bootstrap = aiokafka.client.AIOKafkaClient.bootstrap

    async def busy(client: Any) -> None:
        tries.append(client)
        if len(tries) == fails:
            raise KafkaConnectionError("Unable to bootstrap")
        await bootstrap(client)

    monkeypatch.setattr(aiokafka.client.AIOKafkaClient, "bootstrap", busy)
    assert start().healthy()
    assert len(tries) == 3


def test_foreign_messages_are_counted_and_skipped(start: Start) -> None:
    """What others write on the topics of panes, alerts and deploys stops nothing."""
    worker = start(stream={"flush_s": 0.2})
    kafka = worker.settings.kafka
    worker.produce(FOREIGN, topic=kafka.panes_topic)
    worker.produce([b"{}", b"[1]", b"no JSON", None], topic=kafka.alerts_topic)
    deploy = {"service": "chat", "version": "2", "ts": "2026-03-02T10:00:00Z"}
    worker.produce([b"{}", b"no JSON", None, orjson.dumps(deploy)], topic=kafka.deploys_topic)
    worker.produce(requests(0, 100))
    worker.wait_for(lambda: worker.requests("chat") == 100, "the requests")
    worker.wait_for(lambda: worker.query("SELECT 1 FROM deploys"), "the deploy among them")
    worker.wait_for(lambda: worker.status()["audit"]["foreign"] == len(FOREIGN), "the count")
    worker.wait_for(lambda: worker.status()["chat"]["foreign"] == 4, "the alerts' count")
    worker.stop()
    assert worker.failure is None


def test_a_message_of_a_newer_release_ends_the_worker(
    bootstrap: str, clickhouse: ClickHouse, tmp_path: Path
) -> None:
    """Skipping it would lose records: each start says where it is, and what to do."""
    settings = settings_for(bootstrap, clickhouse, tmp_path, stream={"flush_s": 0.2})
    ensure_topics(settings.kafka)
    newer = struct.pack("<2sBI", protocol.MAGIC, protocol.VERSION + 1, 2) + b"{}"
    panes = settings.kafka.panes_topic
    first = RunningWorker(settings, clickhouse)
    first.produce([newer], topic=panes, partition=1)
    for worker in (first, RunningWorker(settings, clickhouse)):
        with (
            pytest.raises(ReleaseError, match=f"{panes}, partition 1, offset 0") as caught,
            worker,
        ):
            worker.wait_for(lambda: False, "the failure")
        assert "version 3, this worker reads version 2" in caught.value.message
        assert "same release" in caught.value.remedy


def test_lag_is_unknown_then_exact(start: Start) -> None:
    """Without a commit it is unknown, not the end or one more; with all committed it is 0."""
    worker = start(stream={"flush_s": 0.2})
    assert {each.lag for each in lags(worker).values()} == {None}
    worker.produce(requests(0, 83), partition=1)
    worker.wait_for(lambda: worker.committed(worker.topic, 1) == 83, "the commit")
    # The embedded broker tells an end below what is committed: that is no lag, and not negative.
    assert (lags(worker)[0].lag, lags(worker)[1].lag) == (None, 0)


def test_a_message_that_comes_twice_stops_no_commit(start: Start) -> None:
    """A poll acknowledged twice leaves commits going on behind the newest offset."""
    worker = start(stream={"flush_s": 0.2})
    assert worker._worker is not None
    consumer = worker._worker.app.consumer
    take = consumer.ack
    consumer.ack = lambda message: take(message) and take(message)
    worker.produce(requests(0, 50))
    worker.wait_for(lambda: worker.committed(worker.topic, 0) == 50, "the first commit")
    worker.produce(requests(0, 50) + requests(50, 50))
    worker.wait_for(lambda: worker.committed(worker.topic, 0) == 150, "the second commit")
    worker.wait_for(lambda: worker.requests("chat") == 100, "the requests")
    assert worker.ledger("chat")["duplicate"] == 50


@pytest.fixture
def pair(
    bootstrap: str, clickhouse: ClickHouse, tmp_path: Path
) -> Iterator[Sequence[RunningWorker]]:
    """Two workers of one group; the second is not started yet."""
    settings = settings_for(bootstrap, clickhouse, tmp_path, stream={"flush_s": 0.2})
    with RunningWorker(settings, clickhouse) as first:
        yield first, RunningWorker(settings, clickhouse)


def test_a_partition_is_reported_by_its_owner_alone(pair: Sequence[RunningWorker]) -> None:
    """After a rebalance each partition is in one worker's status, and none in both."""
    first, second = pair
    everything = assigned(first)
    first.produce(requests(0, 50))
    first.produce(requests(50, 50), partition=1)
    with second:
        first.wait_for(
            lambda: sorted(assigned(first) + assigned(second)) == everything, "both to share"
        )
        assert assigned(first)
        assert assigned(second)
        sources = [set(worker.status()["ingest"]) for worker in pair]
        first.wait_for(
            lambda: [set(worker.status()["ingest"]) for worker in pair] != sources or all(sources),
            "their sources",
        )
        reported = [name for worker in pair for name in worker.status()["ingest"]]
        assert sorted(reported) == sorted(set(reported))
        assert len(reported) == 2
        first.produce(requests(100, 50))
        first.wait_for(lambda: first.requests("chat") == 150, "every request once")
    first.wait_for(lambda: assigned(first) == everything, "the first to own all again")
