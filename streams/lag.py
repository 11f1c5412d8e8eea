"""How far a consumer group is behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tailbudget.schemas.errors import BrokerError

_PATIENCE_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Where the group is in one partition.

    Attributes:
        topic: the topic.
        partition: the partition.
        committed: offset of the next message to read; None before the first commit.
        end: offset of the next message to be written; None when the broker did not say.
    """

    topic: str
    partition: int
    committed: int | None
    end: int | None

    @property
    def lag(self) -> int | None:
        """Messages behind the end; None when that is not known."""
        return lag(self.committed, self.end)


def lag(committed: int | None, end: int | None) -> int | None:
    """Return how many messages lie between the committed offset and the end.

    Without a committed offset that is unknown: the group may start at either end. An end that
    was read before the newest commit may lie below it, and then nothing is behind.
    """
    if committed is None or end is None or committed < 0 or end < 0:
        return None
    return max(end - committed, 0)


def total(lags: Sequence[PartitionLag]) -> int | None:
    """Return the lag over all partitions; None when that of any is unknown."""
    known = [each.lag for each in lags]
    return None if None in known else sum(each for each in known if each is not None)


def collect(client: AdminClient, group: str, topics: dict[str, int]) -> list[PartitionLag]:
    """Return where a group is, in every partition of some topics.

    Args:
        client: an administration client.
        group: the consumer group.
        topics: name of a topic to its number of partitions.

    Raises:
        BrokerError: the broker does not tell.
    """
    places = [TopicPartition(name, n) for name, count in topics.items() for n in range(count)]
    if not places:
        return []
    try:
        # The commits first: an end read later is never below them but for a commit in between.
        committed = _committed(client, group, places)
        ends = _ends(client, places)
    except KafkaException as error:
        raise BrokerError(
            f"the broker does not tell the offsets of group {group}: {error.args[0].str()}",
            remedy="grant Describe on the group and its topics",
        ) from error
    return [
        PartitionLag(place.topic, place.partition, committed.get(key), ends.get(key))
        for place in places
        for key in [(place.topic, place.partition)]
    ]


def _committed(
    client: AdminClient, group: str, places: list[TopicPartition]
) -> dict[tuple[str, int], int]:
    asked = [ConsumerGroupTopicPartitions(group, places)]
    answer = client.list_consumer_group_offsets(asked)[group].result(_PATIENCE_S)
    found = answer.topic_partitions
    return {(p.topic, p.partition): p.offset for p in found if not p.error and p.offset >= 0}


def _ends(client: AdminClient, places: list[TopicPartition]) -> dict[tuple[str, int], int]:
    answers = client.list_offsets({place: OffsetSpec.latest() for place in places})
    return {
        (place.topic, place.partition): answer.result(_PATIENCE_S).offset
        for place, answer in answers.items()
    }
