"""What this worker publishes on our own topics, and the wait until the broker has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka.partitioner import DefaultPartitioner

from tailbudget.schemas.errors import BrokerError


def partition_of(service: str, partitions: int) -> int:
    """Return the partition of the panes topic that a service's messages go to."""
    return int(DefaultPartitioner()(service.encode(), list(range(partitions)), []))


class Outbox:
    """Sends through the app's producer and keeps the unacknowledged sends.

    A send returns when the message is buffered; `drain` returns when all are acknowledged.

    Attributes:
        reached: the last acknowledged offset of each partition of the panes topic.
    """

    def __init__(
        self,
        producer: Callable[[], Any],
        *,
        panes: str,
        alerts: str,
        dead_letters: str,
        deploys: str,
        models: str,
        partitions: Callable[[], int],
    ) -> None:
        self._producer = producer
        self._panes = panes
        self._alerts = alerts
        self._dead_letters = dead_letters
        self._deploys = deploys
        self._models = models
        self._partitions = partitions
        self._sent: list[Any] = []
        self.reached: dict[int, int] = {}

    async def segment(self, service: str, value: bytes) -> None:
        """Send to the panes partition that owns the service."""
        await self._send(self._panes, service.encode(), value, None)

    async def mark(self, value: bytes) -> None:
        """Send to every panes partition."""
        for partition in range(self._partitions()):
            await self._send(self._panes, None, value, partition)

    async def dead_letter(self, key: bytes, value: bytes) -> None:
        """Send to the dead-letter topic."""
        await self._send(self._dead_letters, key, value, None)

    async def deploy(self, service: str, value: bytes) -> None:
        """Send to the deploys topic."""
        await self._send(self._deploys, service.encode(), value, None)

    async def alert(self, service: str, value: bytes) -> None:
        """Send to the alerts topic."""
        await self._send(self._alerts, service.encode(), value, None)

    async def model(self, key: bytes, value: bytes, partition: int) -> None:
        """Send a part of a state to the partition that has the service's panes, too."""
        await self._send(self._models, key, value, partition)

    async def drain(self) -> None:
        """Wait until the broker has acknowledged all that was sent.

        Raises:
            BrokerError: it refused a message, or did not answer in time.
        """
        sent, self._sent = self._sent, []
        results = await asyncio.gather(*sent, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise BrokerError(
                    f"the broker did not take a message: {result!r}",
                    remedy="look at the broker's health and the topic's max.message.bytes; "
                    "nothing was committed, a restarted worker sends it again",
                ) from result
            if result.topic == self._panes:
                self.reached[result.partition] = result.offset

    async def _send(
        self, topic: str, key: bytes | None, value: bytes, partition: int | None
    ) -> None:
        self._sent.append(await self._producer().send(topic, key, value, partition, None, None))
