"""Messages of polls that wait to be decoded together."""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import attrgetter
from typing import Final

import numpy as np
from faust.types import TP

from tailbudget.streams.sources import SourceBatch
from tailbudget.streams.transport import Message

BATCH_BYTES: Final = 2_000_000
"""Bytes of messages that are decoded together, or those of a tick when they are fewer: decoding
has a price of several milliseconds however few the records are."""

_VALUE: Final = attrgetter("value")
_OFFSET: Final = attrgetter("offset")
_TIMESTAMP: Final = attrgetter("timestamp")


class Gathering:
    """The waiting messages of each source partition, in order."""

    def __init__(self) -> None:
        self._messages: defaultdict[TP, list[Message]] = defaultdict(list)
        self._bytes: Counter[TP] = Counter()

    def add(self, tp: TP, messages: list[Message]) -> bool:
        """Let messages wait; returns whether there are enough for a batch."""
        self._messages[tp] += messages
        self._bytes[tp] += sum(len(message.value or b"") for message in messages)
        return self._bytes[tp] >= BATCH_BYTES

    def end(self, tp: TP) -> int | None:
        """Return the offset behind the last waiting message, None when none waits."""
        waiting = self._messages.get(tp)
        return int(waiting[-1].offset) + 1 if waiting else None

    def take(self, tp: TP, now_ns: int) -> SourceBatch:
        """Return what waits, as a batch, and keep none; no message has arrived later than now."""
        messages = self._messages.pop(tp, [])
        self._bytes.pop(tp, 0)
        return batch(messages, now_ns)

    def clear(self) -> None:
        """Forget all."""
        self._messages.clear()
        self._bytes.clear()


def batch(messages: list[Message], now_ns: int) -> SourceBatch:
    """Return messages as columns; none has arrived later than now."""
    sent_ms = np.fromiter(map(_TIMESTAMP, messages), np.int64, len(messages))
    return SourceBatch(
        list(map(_VALUE, messages)),
        np.fromiter(map(_OFFSET, messages), np.int64, len(messages)),
        np.minimum(sent_ms * 1_000_000, now_ns),
    )
