"""A hole in the offsets is read again before it is believed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from faust.types import TP

from tailbudget.streams.holes import SETTLE_S, TRIES, HoleGuard

SOURCE = TP("requests", 0)


class Broker:
    """Records what it is asked, and has a clock that the test moves."""

    def __init__(self) -> None:
        self.sought: list[int] = []
        self.accepted: list[int] = []
        self.now = 0.0
        self.guard = HoleGuard(self._seek, lambda _, before: self.accepted.append(before), self._at)

    def poll(self, position: int, *offsets: int) -> list[int]:
        messages: list[Any] = [SimpleNamespace(offset=offset) for offset in offsets]
        kept = asyncio.run(self.guard.prefix(SOURCE, position, messages))
        return [message.offset for message in kept]

    async def _seek(self, tp: TP, offset: int) -> None:
        assert tp == SOURCE
        self.sought.append(offset)

    def _at(self) -> float:
        return self.now


def test_offsets_without_a_hole_pass() -> None:
    """A poll that goes on where the last one ended is kept whole."""
    broker = Broker()
    assert broker.poll(5, 5, 6, 7) == [5, 6, 7]
    assert broker.sought == []


def test_the_prefix_is_kept_and_the_rest_read_again() -> None:
    """What stands before the hole counts; the partition is read again from the hole."""
    broker = Broker()
    assert broker.poll(5, 5, 6, 9) == [5, 6]
    assert broker.sought == [7]
    assert broker.poll(7, 7, 8, 9) == [7, 8, 9]


def test_what_was_fetched_before_the_seek_is_no_evidence() -> None:
    """Polls that were on their way when we sought back are dropped, and count as no try."""
    broker = Broker()
    broker.poll(5, 9)
    for offset in (10, 11, 12, 13, 14):
        assert broker.poll(5, offset) == []
    assert (broker.sought, broker.accepted) == ([5], [])


def test_a_hole_that_stays_is_accepted_and_told() -> None:
    """After three readings the hole is believed, and what is behind it counts."""
    broker = Broker()
    for _ in range(TRIES):
        assert broker.poll(5, 9) == []
        broker.now += SETTLE_S
    assert broker.poll(5, 9) == [9]
    assert broker.accepted == [9]


def test_a_log_that_begins_later_has_no_hole() -> None:
    """Without a committed offset the first message may have any offset: retention deletes."""
    assert Broker().poll(0, 500, 501) == [500, 501]
