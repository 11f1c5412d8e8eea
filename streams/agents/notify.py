"""The notify agent: alerts to the chat channels that want them.

An alert is committed once every channel has taken it or refused it for good, and then entered
into ClickHouse; a restarted worker reads there which were told.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import orjson
import structlog
from faust.types import TP

from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ChatError, WireError
from tailbudget.schemas.messages import ChatMessage
from tailbudget.schemas.rows import AlertRow
from tailbudget.sinks.chat import Chat
from tailbudget.sinks.chat_text import render
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.retrying import retrying

log = structlog.get_logger()

Channel = tuple[ChatChannel, Chat]
"""A channel as the settings name it, and the way to send to it."""

GIVE_UP_S: Final = 900.0
"""A message that a channel did not take for so long is given up, counted and logged."""

FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 10.0


class Notify:
    """Tells alerts to chat channels.

    Attributes:
        delivered: messages that a channel took.
        undelivered: messages that a channel refused, or did not take in time.
        foreign: messages of the alerts topic that are no alert of ours.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        store: ClickHouse,
        consumer: Callable[[], Any],
    ) -> None:
        self.delivered = 0
        self.undelivered = 0
        self.foreign = 0
        self._channels = channels
        self._store = store
        self._consumer = consumer
        self._told: set[tuple[str, str]] = set()  # those of services asked about
        self._asked: set[str] = set()

    async def run(self, stream: Any) -> None:
        """Consume polls until the app stops."""
        async for event in stream.noack().events():
            for message in event.value:
                payload = self._payload(event.message.tp, message)
                if payload is not None:
                    await self._tell(payload)
                self._consumer().advance(event.message.tp, message.offset + 1)
            event.ack()

    def revoke(self) -> None:
        """Forget what was told: other owners may tell more before we are owners again."""
        self._told, self._asked = set(), set()

    def _payload(self, tp: TP, message: Any) -> Mapping[str, Any] | None:
        try:
            return alert_payload(message.value)
        except WireError as error:
            self.foreign += 1
            at = f"{tp.topic}, partition {tp.partition}, offset {message.offset}"
            log.warning("foreign message", at=at, error=error.message, remedy=error.remedy)
            return None

    async def _tell(self, payload: Mapping[str, Any]) -> None:
        key, told = (str(payload["alert_id"]), str(payload["state"])), self._told
        if await self._told_before(str(payload["service"]), key):
            return
        message = render(payload)
        wanted = [chat for channel, chat in self._channels if channel.wants(message.service)]
        await asyncio.gather(*(self._deliver(chat, message) for chat in wanted))
        row = _row(payload)
        await retrying(lambda: asyncio.to_thread(self._store.write_alerts, [row]))
        told.add(key)

    async def _told_before(self, service: str, key: tuple[str, str]) -> bool:
        """Return whether an earlier owner told it: it is asked once, we know what we told."""
        told, asked = self._told, self._asked
        if service not in asked:
            rows = await retrying(lambda: asyncio.to_thread(self._store.last_alerts, service))
            told |= {(row.alert_id, row.state) for row in rows}
            asked.add(service)
        return key in told

    async def _deliver(self, chat: Chat, message: ChatMessage) -> None:
        wait_s, since = FIRST_WAIT_S, time.monotonic()
        while True:
            try:
                await asyncio.to_thread(chat.send, message)
            except ChatError as error:
                if not error.retryable or time.monotonic() - since > GIVE_UP_S:
                    self.undelivered += 1
                    log.warning("alert given up", error=error.message, alert_id=message.alert_id)
                    return
                await asyncio.sleep(error.retry_after_s or wait_s)
                wait_s = min(wait_s * 2, LONGEST_WAIT_S)
            else:
                self.delivered += 1
                return


def alert_payload(value: bytes | None) -> Mapping[str, Any]:
    """Return the alert in a message of the alerts topic.

    Raises:
        WireError: it is no alert, or lacks something that every alert has.
    """
    try:
        payload = orjson.loads(value or b"")
        _row(payload)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise WireError(
            f"not an alert of tailbudget's: {error!r}",
            remedy="let nothing but tailbudget's workers write to the alerts topic",
        ) from error
    return cast(Mapping[str, Any], payload)


def _row(payload: Mapping[str, Any]) -> AlertRow:
    return AlertRow(
        service=payload["service"],
        alert=payload["alert"],
        at_ns=payload["at_ns"],
        state=payload["state"],
        reason=payload["reason"],
        measured_ms=payload["measured_ms"],
        slo_ms=payload["slo_ms"],
        tail_driver=payload["tail_driver"] or "",
        alert_id=payload["alert_id"],
        payload=orjson.dumps(payload).decode(),
    )
