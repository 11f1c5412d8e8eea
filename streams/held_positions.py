"""Where a worker must start to read so that it holds the attempts which the last owner held.

Kept as offsets of a consumer group of its own, `<group>.held`, which nobody joins. Any earlier
position serves as well: it only takes longer. So what is kept may lag behind; it must only be
there before an offset is committed past a held attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final, Protocol

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from faust.types import TP

from tailbudget.schemas.errors import BrokerError

_PATIENCE_S: Final = 15.0


class Positions(Protocol):
    """Keeps an offset a partition."""

    async def read(self, partitions: Collection[TP]) -> Mapping[TP, int]:
        """Return the offsets that are kept."""
        ...

    async def write(self, offsets: Mapping[TP, int]) -> None:
        """Keep these offsets; returns once they are safe."""
        ...


class HeldPositions:
    """Positions in the offsets of a consumer group.

    Args:
        client: an administration client.
        group: the workers' group.
    """

    def __init__(self, client: AdminClient, group: str) -> None:
        self._client = client
        self._group = f"{group}.held"

    async def read(self, partitions: Collection[TP]) -> Mapping[TP, int]:
        """Return the offsets that are kept.

        Raises:
            BrokerError: the broker does not tell.
        """
        return await asyncio.to_thread(self._read, partitions) if partitions else {}

    async def write(self, offsets: Mapping[TP, int]) -> None:
        """Keep these offsets; returns once the broker has them.

        Raises:
            BrokerError: the broker does not take them.
        """
        if offsets:
            await asyncio.to_thread(self._write, offsets)

    def _read(self, partitions: Collection[TP]) -> Mapping[TP, int]:
        places = [TopicPartition(tp.topic, tp.partition) for tp in partitions]
        asked = [ConsumerGroupTopicPartitions(self._group, places)]
        try:
            answer = self._client.list_consumer_group_offsets(asked)[self._group]
            found = answer.result(_PATIENCE_S).topic_partitions
        except KafkaException as error:
            raise self._refused("tell", error) from error
        return {TP(p.topic, p.partition): p.offset for p in found if not p.error and p.offset >= 0}

    def _write(self, offsets: Mapping[TP, int]) -> None:
        places = [TopicPartition(tp.topic, tp.partition, at) for tp, at in offsets.items()]
        asked = [ConsumerGroupTopicPartitions(self._group, places)]
        try:
            answer = self._client.alter_consumer_group_offsets(asked)[self._group]
            wrong = [p for p in answer.result(_PATIENCE_S).topic_partitions if p.error]
        except KafkaException as error:
            raise self._refused("take", error) from error
        if wrong:
            raise self._refused("take", KafkaException(wrong[0].error))

    def _refused(self, what: str, error: KafkaException) -> BrokerError:
        return BrokerError(
            f"the broker does not {what} the offsets of group {self._group}: {error.args[0].str()}",
            remedy=f"grant Describe and Read on the group {self._group}, or set stream.retry_hold_s"
            " to 0: then each attempt counts for itself",
        )
