"""Which life of a topic we read: a topic that was deleted and made anew starts at offset 0 again.

Offsets of different lives must not be compared, so the number of the life is part of a source's
name and of a pane's version.
"""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaException, TopicCollection

from tailbudget.schemas.errors import BrokerError
from tailbudget.schemas.kafka import KafkaSettings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.kafka import admin, kafka_config

_PATIENCE_S: Final = 15.0


def incarnations(kafka: KafkaSettings, store: ClickHouse) -> dict[str, int]:
    """Return the number of the present life of each request topic and of the panes topic.

    `kafka.incarnation` overrides what the broker says, for brokers that give topics no ids.

    Raises:
        BrokerError: the broker does not describe a topic.
    """
    topics = [entry.topic for entry in kafka.requests] + [kafka.panes_topic]
    if kafka.incarnation is not None:
        return dict.fromkeys(topics, kafka.incarnation)
    client = admin(kafka_config(kafka))
    futures = client.describe_topics(TopicCollection(topics))
    lives = {}
    for topic, future in futures.items():
        try:
            topic_id = str(future.result(_PATIENCE_S).topic_id)
        except KafkaException as error:
            raise BrokerError(
                f"the broker does not describe topic {topic}: {error.args[0].str()}",
                remedy="grant Describe on the topic, or set kafka.incarnation",
            ) from error
        lives[topic] = store.incarnation(topic, topic_id)
    return lives
