"""Where a consumer group stands."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, TopicPartition

_PATIENCE_S: Final = 30.0
_EVERY_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Commits:
    """When the group's commits of a topic were seen.

    Attributes:
        first_s: `time.monotonic()` of the first.
        last_s: of the one that reached the end.
        before: messages that the first one covered.
        messages: messages in the topic.
    """

    first_s: float
    last_s: float
    before: int
    messages: int


def follow(
    bootstrap: str, group: str, topic: str, partitions: int, check: Callable[[], None]
) -> Commits:
    """Wait until the group has committed the end of the topic; `check` may raise meanwhile."""
    client = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )
    places = [TopicPartition(topic, n) for n in range(partitions)]
    end = sum(client.get_watermark_offsets(p, _PATIENCE_S)[1] for p in places)
    first_s, before = 0.0, 0
    while True:
        done = sum(max(p.offset, 0) for p in client.committed(places, _PATIENCE_S))
        now_s = time.monotonic()
        if done and not before:
            first_s, before = now_s, done
        if done >= end:
            client.close()
            return Commits(first_s, now_s, before, end)
        check()
        time.sleep(_EVERY_S)
