"""The signals agent: what hardware, engines and platforms measure of themselves, to ClickHouse.

A message is one JSON object, or many of them on lines of their own: service, instance, timestamp,
name and value. A value is stored under its own time, so that redelivery changes nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import orjson
import structlog
from faust.types import TP

from tailbudget.schemas.anomaly_rows import SignalRow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.retrying import retrying
from tailbudget.streams.sources.timetext import UNREADABLE, epoch_ns

log = structlog.get_logger()

_LONGEST: Final = 200


class Signals:
    """Writes the values of the signals topic.

    Attributes:
        rejected: values that are none.
    """

    def __init__(self, store: ClickHouse, consumer: Callable[[], Any]) -> None:
        self.rejected = 0
        self._store = store
        self._consumer = consumer

    async def run(self, stream: Any) -> None:
        """Consume polls until the app stops."""
        async for event in stream.noack().events():
            await self._write(list(self._rows(event.message.tp, event.value)))
            self._consumer().advance(event.message.tp, event.message.offset + 1)
            event.ack()

    async def _write(self, rows: list[SignalRow]) -> None:
        if rows:
            await retrying(lambda: asyncio.to_thread(self._store.write_signals, rows))

    def _rows(self, tp: TP, messages: Iterable[Any]) -> Iterator[SignalRow]:
        for message in messages:
            for line in (message.value or b"").splitlines():
                try:
                    yield signal_row(line)
                except ValueError as error:
                    self.rejected += 1
                    log.warning(
                        "not a signal",
                        topic=tp.topic,
                        partition=tp.partition,
                        offset=message.offset,
                        error=str(error),
                        remedy='send {"service", "instance", "timestamp", "name", "value"}',
                    )


def signal_row(line: bytes) -> SignalRow:
    """Return the value in a line.

    Raises:
        ValueError: it is no JSON object, or lacks service, name, a time or a finite value.
    """
    said = orjson.loads(line)
    if not isinstance(said, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  (the caller handles bad values alike)
    missing = [name for name in ("service", "name") if not _is_name(said.get(name))]
    at_ns = epoch_ns(str(said.get("timestamp", "")))
    value = _number(said.get("value"))
    if at_ns == UNREADABLE:
        missing.append("a timestamp")
    if value is None:
        missing.append("a finite value")
    if missing or value is None:
        raise ValueError(f"lacks {', '.join(missing)}")
    instance = str(said.get("instance") or "")[:_LONGEST]
    return SignalRow(said["service"], instance, said["name"], at_ns // 1_000_000, value)


def _number(value: Any) -> float | None:
    """Return a finite number; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST
