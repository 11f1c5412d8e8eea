"""Patience when a worker connects: a broker that is busy may miss the first try."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import structlog
from aiokafka.errors import KafkaConnectionError
from faust.transport.drivers import aiokafka as driver

from tailbudget.schemas.errors import BrokerError
from tailbudget.schemas.kafka import KafkaSettings

log = structlog.get_logger()

CONNECT_WAITS_S: Final = (0.5, 1.0, 2.0, 4.0)
"""Pauses between tries to connect at start."""

FETCH_WAIT_MS: Final = 50
"""How long the broker may hold a fetch back for want of data.

A broker has one fetch at a time from us, and a partition whose records are still being taken is
left out of it: while that fetch waits for the others, often idle, the busy partition waits too.
Faust's 1,500 ms would be added to the latency of an alert at each of its steps.
"""

T = TypeVar("T")


class PatientConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread that fetches, with our patience in place of Faust's."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001 - Faust has no setting for it
        return consumer

    async def on_start(self) -> None:
        """Connect, in several tries."""
        await _connect(super().on_start, self._give_up)

    async def _give_up(self) -> None:
        await self._consumer.stop()


class PatientProducer(driver.Producer):
    """The producer, which connects in several tries."""

    async def on_start(self) -> None:
        """Connect, in several tries."""
        await _connect(super().on_start, self._give_up)

    async def _give_up(self) -> None:
        await self._producer.stop()


async def _connect(start: Callable[[], Awaitable[T]], undo: Callable[[], Awaitable[None]]) -> T:
    """Return what `start` returns; try again a few times while no broker answers."""
    for wait_s in CONNECT_WAITS_S:
        try:
            return await start()
        except KafkaConnectionError as error:
            log.warning("will try again", error=str(error), wait_s=wait_s)
        await undo()
        await asyncio.sleep(wait_s)
    return await start()


def left(kafka: KafkaSettings, cause: BaseException | None) -> BrokerError:
    """Return an error that says that the group does not take us, or has gone."""
    return BrokerError(
        f"consumer group {kafka.group} at {kafka.bootstrap} cannot be joined or went away"
        + (f": {cause!r}" if cause else ""),
        remedy="check the broker, kafka.session_timeout_s against what it allows, credentials"
        " and the rights of the group; nothing is lost",
    )
