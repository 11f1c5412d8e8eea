"""Sends to one channel, in order, and alone: a channel that hangs keeps no other waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.alert_rows import NoticeRow
from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ChatError
from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.chat import Chat
from tailbudget.streams.delivery.backoff import Backoff
from tailbudget.streams.delivery.composing import composed
from tailbudget.streams.delivery.grouping import grouped
from tailbudget.streams.delivery.notice import Notice
from tailbudget.streams.delivery.rate import Rate
from tailbudget.streams.delivery.told import Decision, Told, number

log = structlog.get_logger()

GROUP_S: Final = 0.1
"""How long a first alert waits for others that belong to it: cohorts breach within one round of
judging, and the whole way to chat is to take less than a second."""

Picture = Callable[[Alert], Awaitable[bytes | None]]
Record = Callable[[Sequence[NoticeRow]], Awaitable[None]]


@dataclass(slots=True)
class Tally:
    """What became of messages.

    Attributes:
        delivered: alerts that a channel took.
        undelivered: alerts that a channel refused, or did not take in time.
        waiting: alerts on their way to a channel.
    """

    delivered: int = 0
    undelivered: int = 0
    waiting: int = 0


class Sender:
    """The way to one channel.

    Args:
        channel: what it wants.
        chat: how to send to it.
        tally: counts what becomes of messages.
        record: keeps what became of notices; returns once they are durable.
        picture: makes a picture for an alert.
    """

    def __init__(
        self, channel: ChatChannel, chat: Chat, tally: Tally, *, record: Record, picture: Picture
    ) -> None:
        self.told = Told()
        self._channel = channel
        self._chat = chat
        self._tally = tally
        self._record = record
        self._picture = picture
        self._takes_pictures = channel.picture and chat.limits.pictures
        self._ahead: tuple[Alert, asyncio.Future[bytes | None]] | None = None
        self._rate = Rate(channel.per_minute)
        self._queue: asyncio.Queue[tuple[int, Notice]] = asyncio.Queue()
        self._generation = 0

    @property
    def name(self) -> str:
        """How the channel is called."""
        return self._channel.name

    def wants(self, alert: Alert) -> bool:
        """Return whether the channel is one that an alert goes to."""
        if alert.channels:
            return self.name in alert.channels
        return self._channel.wants(alert.service, alert.severity, alert.cohort)

    def put(self, notice: Notice) -> None:
        """Take one notice; `notice.done` is called when it is over."""
        self._tally.waiting += 1
        self._queue.put_nowait((self._generation, notice))

    def forget(self) -> None:
        """Drop what waits, and what was told: other owners go on."""
        while not self._queue.empty():
            self._queue.get_nowait()
            self._tally.waiting -= 1
        self.told = Told()
        self._generation += 1

    async def run(self) -> None:
        """Send what comes until cancelled."""
        while True:
            waiting = [await self._queue.get()]
            self._draw_ahead(waiting[0][1].alert)
            await asyncio.sleep(GROUP_S)
            while not self._queue.empty():
                waiting.append(self._queue.get_nowait())
            generation = self._generation
            for of, notice in waiting:
                if of != generation:
                    self._finish(notice)
            for group in grouped(notice for of, notice in waiting if of == generation):
                await self._tell(group, generation)

    async def _tell(self, group: Sequence[Notice], generation: int) -> None:
        wanted = []
        for notice in group:
            decision = self.told.decide(notice.alert)
            if decision is Decision.TELL and generation == self._generation:
                wanted.append(notice)
            else:
                self._skip(notice, decision)
        if wanted:
            await self._send(wanted, generation)

    def _skip(self, notice: Notice, decision: Decision) -> None:
        if decision is Decision.NOT_ASKED_FOR:
            self.told.note(notice.alert)
        log.debug("alert not told", channel=self.name, why=decision.value, to=notice.alert.alert_id)
        self._finish(notice)

    async def _send(self, group: Sequence[Notice], generation: int) -> None:
        picture = await self._drawn(group[0].alert) if self._takes_pictures else None
        message = composed(group, self._chat.limits, picture)
        wait_s: float | None = self._rate.take(time.monotonic())
        backoff, error = Backoff(time.monotonic()), None
        while wait_s is not None:
            await asyncio.sleep(wait_s)
            if generation != self._generation:  # Another worker tells it now.
                for notice in group:
                    self._finish(notice)
                return
            error = await self._try(message)
            wait_s = backoff.after(error, time.monotonic())
        if error is not None:
            log.warning("alert given up", error=error.message, alert_id=message.alert_id)
        await self._finished(group, error, backoff.attempts)

    def _draw_ahead(self, alert: Alert) -> None:
        """Begin the picture of a first alert while others may join it."""
        if self._takes_pictures and self.told.decide(alert) is Decision.TELL:
            self._ahead = (alert, asyncio.ensure_future(self._picture(alert)))

    async def _drawn(self, alert: Alert) -> bytes | None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] is alert:
            return await ahead[1]
        return await self._picture(alert)

    async def _try(self, message: ChatMessage) -> ChatError | None:
        try:
            await asyncio.to_thread(self._chat.send, message)
        except ChatError as error:
            return error
        return None

    async def _finished(
        self, group: Sequence[Notice], error: ChatError | None, attempts: int
    ) -> None:
        at_ns = time.time_ns()
        for notice in group:
            self.told.note(notice.alert)
        await self._record([self._row(one.alert, at_ns, error, attempts) for one in group])
        if error is None:
            self._tally.delivered += len(group)
        else:
            self._tally.undelivered += len(group)
        for notice in group:
            self._finish(notice)

    def _row(self, alert: Alert, at_ns: int, error: ChatError | None, attempts: int) -> NoticeRow:
        return NoticeRow(
            service=alert.service,
            alert=alert.alert,
            sequence=number(alert),
            channel=self.name,
            at_ns=at_ns,
            state=alert.state,
            severity=alert.severity,
            outcome=_outcome(error),
            attempts=attempts,
            error="" if error is None else error.message,
        )

    def _finish(self, notice: Notice) -> None:
        self._tally.waiting -= 1
        notice.done()


def _outcome(error: ChatError | None) -> str:
    if error is None:
        return "delivered"
    return "given_up" if error.retryable else "refused"
