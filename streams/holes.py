"""Guards against a broker that skips messages: offsets that should follow each other and do not.

On a topic without transactions and compaction a hole is the broker's fault; the embedded broker
has it when several producers write tiny batches to one partition.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from faust.types import TP

TRIES: Final = 3
"""How often a missing run of offsets is read again before it is accepted as a hole."""

SETTLE_S: Final = 1.0
"""How long what was fetched before a seek may still arrive; it says nothing about the hole."""


class HoleGuard:
    """Lets the messages before a hole through, and has the rest read again.

    Args:
        seek: reads a partition again from an offset.
        accept: told of a hole that stays, by the offset of the message behind it.
        clock: seconds, growing.
    """

    def __init__(
        self,
        seek: Callable[[TP, int], Awaitable[None]],
        accept: Callable[[TP, int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seek = seek
        self._accept = accept
        self._clock = clock
        self._tries: dict[TP, int] = {}
        self._sought: dict[TP, float] = {}

    async def prefix(self, tp: TP, position: int, messages: list[Any]) -> list[Any]:
        """Return the messages up to the first hole; all of them when there is none.

        Args:
            tp: the source partition.
            position: offset that should come first; 0 accepts any, as retention deletes.
            messages: of one poll, from `position` on.
        """
        expected = position or (messages[0].offset if messages else 0)
        for index, message in enumerate(messages):
            if message.offset == expected + index:
                continue
            if self._clock() - self._sought.get(tp, -SETTLE_S) < SETTLE_S:
                return messages[:index]
            tries = self._tries[tp] = self._tries.get(tp, 0) + 1
            if tries > TRIES:
                self._accept(tp, message.offset)
                break
            self._sought[tp] = self._clock()
            await self._seek(tp, expected + index)
            return messages[:index]
        self._tries.pop(tp, None)
        return messages

    def clear(self) -> None:
        """Forget all partitions."""
        self._tries.clear()
        self._sought.clear()
