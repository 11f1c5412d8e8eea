"""An agent that keeps the events of a topic in ClickHouse, each as it came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import structlog
from faust.types import TP

from tailbudget.streams.retrying import retrying

log = structlog.get_logger()

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Kind(Generic[Row]):
    """What a topic's messages are.

    Attributes:
        refusal: what is said of a message that is none.
        read: from the bytes of an event to its row; a ValueError says what is wrong with it.
        example: what to send.
        lines: a message may hold many events, on lines of their own.
    """

    refusal: str
    read: Callable[[bytes], Row]
    example: str
    lines: bool = False


class Events(Generic[Row]):
    """Writes the events of one topic.

    Attributes:
        rejected: events that are none.
    """

    def __init__(
        self, kind: Kind[Row], write: Callable[[list[Row]], None], consumer: Callable[[], Any]
    ) -> None:
        self.rejected = 0
        self._kind = kind
        self._insert = write
        self._consumer = consumer

    async def run(self, stream: Any) -> None:
        """Consume polls until the app stops."""
        async for event in stream.noack().events():
            await self._write(list(self._rows(event.message.tp, event.value)))
            self._consumer().advance(event.message.tp, event.message.offset + 1)
            event.ack()

    async def _write(self, rows: list[Row]) -> None:
        if rows:
            await retrying(lambda: asyncio.to_thread(self._insert, rows))

    def _rows(self, tp: TP, messages: Iterable[Any]) -> Iterator[Row]:
        for message in messages:
            value = message.value or b""
            for one in value.splitlines() if self._kind.lines else (value,):
                try:
                    yield self._kind.read(one)
                except ValueError as error:
                    self.rejected += 1
                    log.warning(
                        self._kind.refusal,
                        topic=tp.topic,
                        partition=tp.partition,
                        offset=message.offset,
                        error=str(error),
                        remedy=f"send {self._kind.example}",
                    )
