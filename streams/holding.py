"""What ingest holds, and how the next owner of a source comes to hold it too.

These are failed attempts, and spans of traces that may not be whole yet. An offset may be committed
past them, for a position at or before the first of them is kept (`streams.held_positions`). Whoever
is assigned the source reads from there: what lies below the committed offset is counted already,
and only tells what is held (`streams.held_attempts`, `sources.trace_assembly`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import structlog
from faust.types import TP

from tailbudget.schemas.errors import BrokerError
from tailbudget.schemas.settings import StreamSettings
from tailbudget.streams.gathering import batch
from tailbudget.streams.held_attempts import MOST_FAILED, HeldAttempts
from tailbudget.streams.held_positions import Positions
from tailbudget.streams.intake import Intake, Pending
from tailbudget.streams.operations import Limits
from tailbudget.streams.sources import Decoder

log = structlog.get_logger()

SETTLE_S: Final = 1.0
"""Polls that were fetched before a seek still come; it is not repeated for so long."""


class Holding:
    """What ingest does so that held attempts and spans survive it.

    Args:
        settings: how long attempts are held.
        positions: keeps where to start.
        seek: reads a partition again from an offset.
        spans: decoders hold spans too, even where no attempts are held.
    """

    def __init__(
        self,
        settings: StreamSettings,
        positions: Positions,
        seek: Callable[[TP, int], Awaitable[None]],
        *,
        spans: bool = False,
    ) -> None:
        self._limits = Limits(
            hold_ns=int(settings.retry_hold_s * 1e9),
            disorder_ns=int(settings.grace_s * 1e9),
            most=MOST_FAILED,
        )
        self._holds = spans or self._limits.hold_ns > 0
        self._positions = positions
        self._seek = seek
        self._kept: dict[TP, int] = {}
        self._begun: set[TP] = set()
        self._sought: dict[TP, float] = {}

    def attempts(self) -> HeldAttempts:
        """Return what holds the attempts of a source."""
        return HeldAttempts(self._limits)

    async def starts(self, committed: Mapping[TP, int]) -> Mapping[TP, int]:
        """Return where to read from: at the committed offsets or before them."""
        if not self._holds:
            return committed
        kept = await self._positions.read(list(committed))
        # Offsets that were set back make a position worthless: older attempts may be held anew.
        valid = {tp: at for tp, at in kept.items() if at <= committed[tp]}
        self._kept |= valid
        return {tp: valid.get(tp, start) for tp, start in committed.items()}

    async def replay(
        self, tp: TP, source: Intake, messages: list[Any], decoder: Decoder
    ) -> list[Any]:
        """Hold what was held below the committed offset; return the messages from there on."""
        old = [message for message in messages if message.offset < source.start]
        if old:
            self._begun.add(tp)
            source.replay(decoder.decode(batch(old, time.time_ns())), int(old[-1].offset) + 1)
        elif tp not in self._begun:  # fetched before the seek: it comes again
            if time.monotonic() - self._sought.get(tp, -SETTLE_S) >= SETTLE_S:
                self._sought[tp] = time.monotonic()
                await self._seek(tp, source.position)
            return []
        fresh = messages[len(old) :]
        if fresh:
            source.position = source.start
        return fresh

    async def before_commit(self, cut: Mapping[TP, tuple[Intake, Pending]]) -> None:
        """Keep a position for every source that holds something and has none kept.

        Raises:
            BrokerError: the broker does not take it; then nothing may be committed.
        """
        first = {
            tp: source.committed
            for tp, (source, pending) in cut.items()
            if pending.held_from < pending.end and tp not in self._kept
        }
        await self._positions.write(first)
        self._kept |= first

    async def advance(self, sources: Mapping[TP, Intake]) -> None:
        """Move the kept positions up to what is held as of the committed offsets."""
        moved = {
            tp: source.held_from
            for tp, source in sources.items()
            if tp in self._kept and source.held_from > self._kept[tp]
        }
        try:
            await self._positions.write(moved)
        except BrokerError as error:  # an old position serves as well
            log.warning("will try again", error=error.message, remedy=error.remedy)
            return
        self._kept |= moved

    def clear(self) -> None:
        """Forget all sources."""
        self._kept.clear()
        self._begun.clear()
        self._sought.clear()
