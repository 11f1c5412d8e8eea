"""Topics that a test creates by hand."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import NewTopic

from tailbudget.streams.kafka import ClientConfig, admin

PATIENCE_S = 30.0


def create_topics(config: ClientConfig, partitions: Mapping[str, int]) -> None:
    """Create topics, each with its number of partitions; a KafkaException when one exists."""
    client = admin(config)  # held, for its answers end with it
    wanted = [NewTopic(name, count, 1) for name, count in partitions.items()]
    for answer in client.create_topics(wanted, operation_timeout=PATIENCE_S).values():
        answer.result(PATIENCE_S)
