"""Guards against a broker that stops delivering: messages are known to be there and do not come.

Seen with the embedded broker under load; a partition that is sought anew is delivered again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

import structlog
from faust.types import TP

log = structlog.get_logger()

STALLED_S: Final = 3.0
"""How long a partition may stand still while it has messages, before it is sought anew."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a partition is read.

    Attributes:
        tp: the partition.
        position: next offset that we want.
        end: one past the last offset that is known to exist.
    """

    tp: TP
    position: int
    end: int


class StallGuard:
    """Seeks partitions that stand still although they have messages.

    Args:
        seek: reads a partition from an offset.
        clock: seconds, growing.
    """

    def __init__(
        self,
        seek: Callable[[TP, int], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seek = seek
        self._clock = clock
        self._since: dict[TP, tuple[int, float]] = {}

    async def look(self, standings: Iterable[Standing]) -> None:
        """Compare where the partitions are with where they were."""
        now = self._clock()
        before, self._since = self._since, {}
        for one in standings:
            if one.end <= one.position:
                continue
            position, since = before.get(one.tp, (-1, now))
            if position != one.position:
                since = now
            elif now - since >= STALLED_S:
                log.warning("read again", at=f"{one.tp.topic}:{one.tp.partition}:{one.position}")
                await self._seek(one.tp, one.position)
                since = now
            self._since[one.tp] = (one.position, since)
