"""The delivery agent: takes alerts from their topic and gives each to the channels that want it.

An alert is committed once every channel has taken it or refused it for good, and its rows are in
ClickHouse. Channels do not wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import orjson
import structlog
from faust.types import TP

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.alert_rows import NoticeRow
from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.rows import AlertRow
from tailbudget.sinks.chat import Chat
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_log import change_row
from tailbudget.streams.delivery.change_split import Split
from tailbudget.streams.delivery.last_hour import LastHourPictures
from tailbudget.streams.delivery.notice import Notice
from tailbudget.streams.delivery.offsets import Offsets
from tailbudget.streams.delivery.sender import Picture, Sender, Tally
from tailbudget.streams.retrying import retrying

log = structlog.get_logger()

Channel = tuple[ChatChannel, Chat]
"""A channel as the settings name it, and the way to send to it."""

Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]

MOST_WAITING: Final = 5_000
"""Alerts that may wait for channels before the topic is read no further; it keeps the rest."""

_OLD_STATES: Final = ("firing", "resolved")
"""States that the table `alerts` knows."""


class Delivery:
    """Gives alerts to chat channels.

    Args:
        channels: whom to tell.
        store: keeps changes, and what became of notices.
        consumer: the app's consumer; asked for each time, for a restart replaces it.
        spawn: starts a task whose failure ends the worker.
        picture: makes pictures; by default of the last hour in the store.
        split: adds what made the p99 another than before; by default nothing.

    Attributes:
        foreign: messages of the alerts topic that are no alert of ours.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        store: ClickHouse,
        consumer: Callable[[], Any],
        *,
        spawn: Spawn,
        picture: Picture | None = None,
        split: Split | None = None,
    ) -> None:
        self.foreign = 0
        self._spawn_task = spawn
        self._room = asyncio.Event()
        self._owned = 0
        self._tally = Tally()
        self._store = store
        self._offsets = Offsets(lambda tp, offset: consumer().advance(tp, offset))
        self._asked: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = self._stopped = False
        shown = picture or LastHourPictures(store)
        self._senders = [
            Sender(
                channel,
                chat,
                self._tally,
                record=self._record,
                picture=shown,
                split=split or _unsplit,
            )
            for channel, chat in channels
        ]

    @property
    def delivered(self) -> int:
        """Alerts that a channel took."""
        return self._tally.delivered

    @property
    def undelivered(self) -> int:
        """Alerts that a channel refused, or did not take in time."""
        return self._tally.undelivered

    @property
    def waiting(self) -> int:
        """Alerts on their way to a channel."""
        return self._tally.waiting

    async def run(self, stream: Any) -> None:
        """Consume polls until the app stops."""
        self._begin()
        async for event in stream.noack().events():
            for message in event.value:
                await self.take(event.message.tp, message.offset, message.value)
            event.ack()

    async def take(self, tp: TP, offset: int, value: bytes | None) -> None:
        """Take one message of the alerts topic; waits while too many are on their way.

        After `stop` nothing is taken, and nothing committed.
        """
        if self._stopped:
            return
        self._begin()
        while len(self._offsets) >= MOST_WAITING:
            self._room.clear()
            await self._room.wait()
        self._offsets.begin(tp, offset)
        owned = self._owned
        try:
            payload = orjson.loads(value or b"")
            alert = Alert.from_payload(payload)
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            self.foreign += 1
            at = f"{tp.topic}, partition {tp.partition}, offset {offset}"
            log.warning("foreign message", at=at, error=repr(error))
            self._finish(tp, offset, owned)
            return
        await self._restore(alert.service)
        if owned == self._owned:
            self._give(alert, payload, lambda: self._finish(tp, offset, owned))

    def revoke(self) -> None:
        """Forget what waits and what was told: other owners go on before we are owners again."""
        self._owned += 1
        self._offsets.forget()
        self._room.set()
        self._asked.clear()
        for sender in self._senders:
            sender.forget()

    async def stop(self) -> None:
        """End the tasks for good; what waits is read again from the topic."""
        self._stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _finish(self, tp: TP, offset: int, owned: int) -> None:
        """Finish a message, unless its partition was ours in an earlier life only."""
        if owned == self._owned:
            self._offsets.finish(tp, offset)
            self._room.set()

    def _begin(self) -> None:
        if not self._running and not self._stopped:
            self._running = True
            for sender in self._senders:
                self._spawn(sender.run())

    def _give(self, alert: Alert, payload: Mapping[str, Any], done: Callable[[], None]) -> None:
        """Hand one alert to the channels that want it, and to ClickHouse."""
        wanted = [sender for sender in self._senders if sender.wants(alert)]
        parts = _Parts(len(wanted) + 1, done)
        for sender in wanted:
            sender.put(Notice(alert, payload, parts.one_done))
        self._spawn(self._keep(alert, payload, parts))

    async def _keep(self, alert: Alert, payload: Mapping[str, Any], parts: _Parts) -> None:
        if alert.sequence:
            row = change_row(alert)
            await retrying(lambda: asyncio.to_thread(self._store.write_changes, [row]))
        if alert.state in _OLD_STATES:
            old = _alert_row(alert, payload)
            await retrying(lambda: asyncio.to_thread(self._store.write_alerts, [old]))
        parts.one_done()

    async def _record(self, rows: Sequence[NoticeRow]) -> None:
        await retrying(lambda: asyncio.to_thread(self._store.write_notices, rows))

    async def _restore(self, service: str) -> None:
        """Ask once what earlier owners told; we know what we told ourselves."""
        if service in self._asked:
            return
        owned = self._owned
        rows = await retrying(lambda: asyncio.to_thread(self._store.last_notices, service))
        if owned != self._owned:
            return
        self._asked.add(service)
        for sender in self._senders:
            sender.told.restore(row for row in rows if row.channel == sender.name)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._spawn_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _unsplit(alert: Alert) -> Alert:
    return alert


class _Parts:
    """Calls `done` once all parts are done."""

    def __init__(self, count: int, done: Callable[[], None]) -> None:
        self._left = count
        self._done = done

    def one_done(self) -> None:
        """Note that one part is done."""
        self._left -= 1
        if not self._left:
            self._done()


def _alert_row(alert: Alert, payload: Mapping[str, Any]) -> AlertRow:
    return AlertRow(
        service=alert.service,
        alert=alert.alert,
        at_ns=alert.at_ns,
        state=alert.state,
        reason=alert.reason,
        measured_ms=alert.measured_ms,
        slo_ms=alert.slo_ms,
        tail_driver=alert.tail_driver or "",
        alert_id=alert.alert_id,
        payload=orjson.dumps(payload).decode(),
    )
