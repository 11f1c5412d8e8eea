"""The deploys agent: deploy and scale-up events to ClickHouse, where audits read them.

Every announcement is stored as it came, keyed by its content, so that redelivery changes nothing
and late events need no special path. Announcements of one deploy are joined when they are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import orjson
import structlog
from faust.types import TP

from tailbudget.schemas.rows import DeployRow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.retrying import retrying
from tailbudget.streams.sources.timetext import UNREADABLE, epoch_ns

log = structlog.get_logger()


class Deploys:
    """Writes the events of the deploys topic.

    Attributes:
        rejected: messages that are no deploy event.
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

    async def _write(self, rows: list[DeployRow]) -> None:
        if rows:
            await retrying(lambda: asyncio.to_thread(self._store.write_deploys, rows))

    def _rows(self, tp: TP, messages: Iterable[Any]) -> Iterable[DeployRow]:
        for message in messages:
            try:
                yield deploy_row(message.value)
            except ValueError as error:
                self.rejected += 1
                log.warning(
                    "not a deploy event",
                    topic=tp.topic,
                    partition=tp.partition,
                    offset=message.offset,
                    error=str(error),
                    remedy='send {"service", "version", "ts"} and, if you like, "env" and "kind"',
                )


def deploy_event(row: DeployRow) -> bytes:
    """Return the message that announces a deploy; `deploy_row` reads it."""
    return orjson.dumps(
        {
            "service": row.service,
            "env": row.env,
            "version": row.version,
            "kind": row.kind,
            "ts": row.at_ns,
        }
    )


def deploy_row(value: bytes | None) -> DeployRow:
    """Return the event in a message.

    Raises:
        ValueError: it is no JSON object, or lacks service, version or a time.
    """
    event = orjson.loads(value or b"")
    if not isinstance(event, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  (the caller handles bad values alike)
    missing = [name for name in ("service", "version") if not isinstance(event.get(name), str)]
    at_ns = epoch_ns(str(event.get("ts", event.get("timestamp", ""))))
    if missing or at_ns == UNREADABLE:
        raise ValueError(f"lacks {', '.join(missing) or 'a time (ts)'}")
    return DeployRow(
        service=event["service"],
        env=str(event.get("env", "")),
        version=event["version"],
        at_ns=at_ns,
        last_ns=at_ns,
        kind=str(event.get("kind", "deploy")),
    )
