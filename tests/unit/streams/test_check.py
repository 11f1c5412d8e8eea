"""Topics, lag and `check` against real brokers: the embedded one, and Apache Kafka when given."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from new_topics import create_topics

from tailbudget.schemas.errors import BrokerError
from tailbudget.schemas.kafka import KafkaSettings
from tailbudget.schemas.settings import Settings
from tailbudget.streams.check import Finding, check
from tailbudget.streams.database import open_database
from tailbudget.streams.embedded import EmbeddedBroker, free_port
from tailbudget.streams.kafka import admin, kafka_config
from tailbudget.streams.lag import PartitionLag, collect, total
from tailbudget.streams.topics import (
    TopicSpec,
    await_topics,
    cleanup_policies,
    ensure_topics,
    partition_problems,
    policy_problems,
    topic_specs,
)

APACHE = os.environ.get("TAILBUDGET_TEST_BOOTSTRAP")


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the embedded broker for the tests of this file."""
    log_path = tmp_path_factory.mktemp("broker") / "broker.log"
    with EmbeddedBroker(log_path=log_path) as broker:
        yield broker.bootstrap


@pytest.fixture(params=["embedded", pytest.param("apache", marks=pytest.mark.kafka)])
def kafka(request: pytest.FixtureRequest, embedded: str) -> Iterator[KafkaSettings]:
    """Return settings with topics of their own on each broker; remove those topics after."""
    if request.param == "apache" and APACHE is None:
        pytest.skip("TAILBUDGET_TEST_BOOTSTRAP is not set")
    prefix = f"check-{uuid.uuid4().hex[:8]}"
    settings = KafkaSettings.model_validate(
        {
            "bootstrap": APACHE if request.param == "apache" else embedded,
            "prefix": prefix,
            "group": prefix,
            "partitions": 2,
            "requests": [{"topic": f"{prefix}.requests"}],
        }
    )
    yield settings
    client = admin(kafka_config(settings))
    present = client.list_topics(timeout=10).topics
    if mine := [name for name in present if name.startswith(prefix)]:
        for answer in client.delete_topics(mine).values():
            answer.result(10)


def settings_for(kafka: KafkaSettings, tmp_path: Path, **more: Any) -> Settings:
    """Return settings with that broker and a new embedded engine."""
    return Settings.model_validate(
        {"kafka": kafka, "clickhouse": {"interface": "chdb"}, "data_dir": tmp_path, **more}
    )


def make(kafka: KafkaSettings, partitions: dict[str, int]) -> None:
    """Create topics by hand, and wait until they are seen."""
    create_topics(kafka_config(kafka), partitions)
    await_topics(kafka_config(kafka), partitions)


def wrong(settings: Settings) -> list[Finding]:
    """Return what `check` finds wrong."""
    return [finding for finding in check(settings, patience_s=2.0) if not finding.ok]


def test_topics_are_made_once_as_they_should_be(kafka: KafkaSettings) -> None:
    """The first call makes every topic with its partitions and policy, the second none."""
    specs = topic_specs(kafka)
    names = [spec.name for spec in specs]
    assert ensure_topics(kafka) == set(names)
    assert ensure_topics(kafka) == set()
    client = admin(kafka_config(kafka))
    present = client.list_topics(timeout=10).topics
    assert {name: len(present[name].partitions) for name in names} == dict.fromkeys(names, 2)
    policies = cleanup_policies(client, names)
    assert [problem for s in specs for problem in policy_problems(s, policies[s.name])] == []


def test_a_missing_topic_alone_is_made(kafka: KafkaSettings) -> None:
    """Topics that exist stay; a request topic keeps the partitions it has."""
    make(kafka, {kafka.requests[0].topic: 5})
    assert ensure_topics(kafka) == set(kafka.own_topics)


def test_other_partitions_than_wanted_are_refused(kafka: KafkaSettings) -> None:
    """A topic of ours with other partitions is told before anything is made."""
    make(kafka, {kafka.panes_topic: 3})
    with pytest.raises(BrokerError, match="has 3 partitions where 2 are wanted") as caught:
        ensure_topics(kafka)
    assert "set kafka.partitions to 3" in caught.value.remedy


def test_lag_is_unknown_until_the_first_commit(kafka: KafkaSettings) -> None:
    """Before a commit the lag is unknown; after one it is the messages behind it."""
    config = kafka_config(kafka)
    topic = kafka.requests[0].topic
    make(kafka, {topic: 1})
    producer = Producer(config)
    for number in range(5):
        producer.produce(topic, str(number).encode())
        producer.flush(10)
    client = admin(config)
    before = collect(client, kafka.group, {topic: 1})
    assert [each.committed for each in before] == [None]
    assert total(before) is None
    consumer = Consumer({**config, "group.id": kafka.group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    assert collect(client, kafka.group, {topic: 1}) == [PartitionLag(topic, 0, 2, 5)]
    assert collect(client, kafka.group, {}) == []


def test_check_finds_nothing_wrong_when_all_is_there(kafka: KafkaSettings, tmp_path: Path) -> None:
    """With topics and tables in place everything is ok, and nothing was changed."""
    ensure_topics(kafka)
    settings = settings_for(
        kafka,
        tmp_path,
        chat=[{"name": "ops", "url": "json://127.0.0.1:9/x"}],
        services={"chat": {"slo": "p99=200"}},
    )
    findings = {finding.subject: finding for finding in check(settings)}
    assert [finding for finding in findings.values() if not finding.ok] == []
    assert findings["settings"].what == "SLO set for chat"
    assert findings["chat channel ops"].what == "hears of *"
    assert findings["clickhouse"].what.endswith("is new: nothing stored yet")
    unknown = "unknown: no committed offset in 2 of 2 partitions"
    assert findings[f"lag of group {kafka.group}"].what == unknown
    assert not settings.clickhouse.path.exists()


def test_check_names_each_thing_that_is_wrong(kafka: KafkaSettings, tmp_path: Path) -> None:
    """Missing and wrong topics, a bad channel: each with a remedy, in one go."""
    make(kafka, {kafka.panes_topic: 3, kafka.alerts_topic: 1})
    settings = settings_for(kafka, tmp_path, chat=[{"name": "ops", "url": "slacc://x/y"}])
    found = {finding.subject: (finding.what, finding.remedy) for finding in wrong(settings)}
    prefix = kafka.prefix
    assert set(found) == {
        *(f"topic {prefix}.{name}" for name in ("requests", "panes", "deploys", "alerts")),
        *(f"topic {prefix}.{name}" for name in ("dead-letters", "signals", "models")),
        "chat channel ops",
    }
    assert found[f"topic {prefix}.requests"][0] == "does not exist"
    assert found[f"topic {prefix}.panes"][0].endswith("has 3 partitions where 2 are wanted")
    assert "kafka-topics.sh --alter" in found[f"topic {prefix}.alerts"][1]
    assert all(remedy for _, remedy in found.values())


def test_check_goes_on_without_a_broker(tmp_path: Path) -> None:
    """An absent broker is told with where it was sought, and the rest is still looked at."""
    kafka = KafkaSettings(bootstrap=f"127.0.0.1:{free_port()}")
    settings = settings_for(kafka, tmp_path)
    findings = list(check(settings, patience_s=0.3))
    assert [finding.subject for finding in findings] == ["settings", "broker", "clickhouse", "chat"]
    broker = findings[1]
    assert (broker.ok, kafka.bootstrap in broker.what) == (False, True)
    assert "kafka.bootstrap" in broker.remedy


def test_check_tells_an_absent_clickhouse_in_one_line(embedded: str, tmp_path: Path) -> None:
    """A server that refuses the connection is named with its address and the remedy."""
    kafka = KafkaSettings(bootstrap=embedded, prefix="absent")
    port = free_port()
    settings = settings_for(kafka, tmp_path, clickhouse={"port": port})
    found = {finding.subject: finding for finding in wrong(settings)}["clickhouse"]
    assert found.what == f"ClickHouse at 127.0.0.1:{port} does not answer: Connection refused"
    assert "clickhouse.host" in found.remedy


def test_check_asks_for_the_migration(embedded: str, tmp_path: Path) -> None:
    """A database without our tables is told with the command that makes them."""
    kafka = KafkaSettings(bootstrap=embedded, prefix="unmigrated")
    settings = settings_for(kafka, tmp_path)
    open_database(settings.clickhouse, create=True).close()
    found = {finding.subject: finding for finding in wrong(settings)}["clickhouse"]
    assert "tailbudget migrate" in found.remedy


def test_an_unreadable_authority_is_told(tmp_path: Path) -> None:
    """A certificate file that is not there is found before the broker is blamed."""
    kafka = KafkaSettings(
        bootstrap=f"127.0.0.1:{free_port()}", security_protocol="SSL", ssl_ca=tmp_path / "no.pem"
    )
    found = wrong(settings_for(kafka, tmp_path))
    assert found[0].subject == "kafka.ssl_ca"
    assert "no.pem cannot be read" in found[0].what


OURS = TopicSpec("t", 4, ours=True, cleanup="compact,delete", retention_h=1)
THEIRS = TopicSpec("t", 4, ours=False, cleanup="delete", retention_h=1)


@pytest.mark.parametrize(
    ("spec", "policy", "expected"),
    [
        (OURS, "delete, compact", []),
        (OURS, "", []),
        (OURS, "delete", ["has cleanup.policy=delete where compact,delete is wanted"]),
        (THEIRS, "delete", []),
        (THEIRS, "compact", ["all but the last are lost"]),
    ],
)
def test_how_a_topic_is_cleaned_up(spec: TopicSpec, policy: str, expected: list[str]) -> None:
    """Our topics have our policy in any order of words; others must only not be compacted."""
    problems = policy_problems(spec, policy)
    assert len(problems) == len(expected)
    for (what, remedy), text in zip(problems, expected, strict=True):
        assert text in what
        assert remedy.startswith("kafka-configs.sh --alter --topic t --add-config cleanup.policy=")


def test_partitions_of_others_are_theirs() -> None:
    """Only our own topics must have the partitions of the settings."""
    assert partition_problems(THEIRS, {"t": 9}) == []
    assert partition_problems(OURS, {"t": 4}) == []
    assert partition_problems(OURS, {}) == []
    assert "--partitions 4" in partition_problems(OURS, {"t": 2})[0][1]
