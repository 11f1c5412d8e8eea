"""A partition that stands still although it has messages is sought anew."""

from __future__ import annotations

import asyncio

from faust.types import TP

from tailbudget.streams.stalls import STALLED_S, StallGuard, Standing

PANES = TP("panes", 0)


class Watch:
    """A guard with a clock that the test moves, and what it sought."""

    def __init__(self) -> None:
        self.sought: list[tuple[TP, int]] = []
        self.now = 0.0
        self.guard = StallGuard(self._seek, lambda: self.now)

    def look(self, position: int, end: int, after_s: float = 1.0) -> None:
        self.now += after_s
        asyncio.run(self.guard.look([Standing(PANES, position, end)]))

    async def _seek(self, tp: TP, offset: int) -> None:
        self.sought.append((tp, offset))


def test_a_partition_that_stands_still_is_sought() -> None:
    """After three seconds without a step it is read again from where it stands."""
    watch = Watch()
    watch.look(12, 15)
    watch.look(12, 15, STALLED_S)
    assert watch.sought == [(PANES, 12)]


def test_progress_and_silence_are_no_stalls() -> None:
    """A partition that moves, or has nothing more, is left alone however long."""
    watch = Watch()
    for position in range(10):
        watch.look(position, 15, STALLED_S)
    for _ in range(5):
        watch.look(15, 15, STALLED_S)
    assert watch.sought == []


def test_a_seek_is_given_time() -> None:
    """After a seek the partition has three seconds again."""
    watch = Watch()
    watch.look(12, 15)
    watch.look(12, 15, STALLED_S)
    watch.look(12, 15, STALLED_S / 2)
    assert len(watch.sought) == 1
    watch.look(12, 15, STALLED_S)
    assert len(watch.sought) == 2
