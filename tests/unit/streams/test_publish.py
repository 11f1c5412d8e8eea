"""Packing records into messages, and publishing them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from hypothesis import given
from hypothesis import strategies as st
from new_topics import create_topics

from tailbudget.schemas.errors import BrokerError
from tailbudget.streams.embedded import EmbeddedBroker
from tailbudget.streams.kafka import client_config
from tailbudget.streams.packing import pack
from tailbudget.streams.publish import Publisher

RECORDS = st.lists(
    st.tuples(st.binary(max_size=30).filter(lambda b: b"\n" not in b), st.integers(0, 5000))
)


@given(RECORDS, st.integers(0, 100), st.integers(0, 3000))
def test_packing_keeps_every_record_in_order(
    records: list[tuple[bytes, int]], max_bytes: int, span_ms: int
) -> None:
    """Unpacking gives the records back; packs keep to their size, span and newest timestamp."""
    left = list(records)
    for message in pack(records, max_bytes=max_bytes, span_ms=span_ms):
        part, left = left[: message.records], left[message.records :]
        assert message.value.split(b"\n") == [record for record, _ in part]
        times = [timestamp_ms for _, timestamp_ms in part]
        assert message.timestamp_ms == max(times)
        assert max(times) - min(times) <= span_ms
        assert message.records == 1 or len(message.value) <= max_bytes
    assert left == []


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log_path: Path = tmp_path_factory.mktemp("broker") / "broker.log"
    with EmbeddedBroker(log_path=log_path) as broker:
        yield broker.bootstrap


def consume(bootstrap: str, topic: str, partitions: int, messages: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    try:
        got: list[Message] = []
        for _ in range(60):
            if len(got) >= messages:
                break
            got += consumer.consume(messages, timeout=1.0)
        return got
    finally:
        consumer.close()


def test_packs_go_round_the_partitions_with_their_timestamps(bootstrap: str) -> None:
    """Each partition gets its turn, and a message carries the log's time, not ours."""
    create_topics(client_config(bootstrap), {"packed": 2})
    records = [(f"r{n}".encode(), 1_700_000_000_000 + n) for n in range(100)]
    with Publisher(client_config(bootstrap)) as publisher:
        assert publisher.publish("packed", records, max_bytes=50) == 100
    assert publisher.records == 100
    got = consume(bootstrap, "packed", 2, publisher.delivered)
    rows = [row for message in got for row in message.value().split(b"\n")]
    assert sorted(rows) == sorted(record for record, _ in records)
    assert {message.partition() for message in got} == {0, 1}
    newest = {message.value(): message.timestamp()[1] for message in got}
    assert newest[b"\n".join(record for record, _ in records[:15])] == 1_700_000_000_014


def test_keyed_messages_stay_whole(bootstrap: str) -> None:
    """A single message keeps its key, and a record of 2 MB travels too."""
    create_topics(client_config(bootstrap), {"single": 1})
    with Publisher(client_config(bootstrap)) as publisher:
        publisher.send("single", b"v", key=b"k", timestamp_ms=1)
        publisher.send("single", b"x" * 2_000_000)
    got = consume(bootstrap, "single", 1, 2)
    assert [(m.key(), len(m.value())) for m in got] == [(b"k", 1), (None, 2_000_000)]


def test_a_missing_topic_is_named(bootstrap: str) -> None:
    """Publishing to a topic that does not exist fails at once and says which."""
    with (
        Publisher(client_config(bootstrap)) as publisher,
        pytest.raises(BrokerError, match="topic 'nowhere' does not exist"),
    ):
        publisher.publish("nowhere", [(b"r", 1)])


def test_undelivered_messages_are_counted_and_raised(tmp_path: Path) -> None:
    """When the broker goes away, closing says how many messages were lost."""
    with EmbeddedBroker(log_path=tmp_path / "broker.log") as broker:
        create_topics(client_config(broker.bootstrap), {"t": 1})
        publisher = Publisher(client_config(broker.bootstrap), timeout_s=1.0)
        publisher.publish("t", [(b"kept", 1)])
        publisher.flush()
    publisher.publish("t", [(b"a", 1), (b"b", 5000)])
    with pytest.raises(BrokerError, match="2 of 3 messages were not delivered"):
        publisher.close()


def test_no_broker_is_an_error_at_once() -> None:
    """A publisher that reaches nobody says where it looked and what to set."""
    with pytest.raises(BrokerError, match=r"no Kafka broker answers at 127\.0\.0\.1:1") as caught:
        Publisher(client_config("127.0.0.1:1"), timeout_s=0.3)
    assert "kafka.bootstrap" in caught.value.remedy
