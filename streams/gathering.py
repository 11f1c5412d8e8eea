"""Messages of polls that wait to be decoded together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from typing import Final

import numpy as np
from faust.types import TP
from numpy.typing import NDArray

from tailbudget.models.columns import run
from tailbudget.schemas.records import Columns, Decoded, Rejected
from tailbudget.streams.sources import SourceBatch
from tailbudget.streams.transport import Message

BATCH_BYTES: Final = 6_000_000
"""Bytes of a topic's messages that are decoded together, or those of a tick when they are fewer:
decoding has a price of several milliseconds however few the records are."""

_VALUE: Final = attrgetter("value")
_OFFSET: Final = attrgetter("offset")
_TIMESTAMP: Final = attrgetter("timestamp")


@dataclass(frozen=True, slots=True)
class Share:
    """What one source partition has in a batch.

    Attributes:
        tp: the source partition.
        first: number of its first message in the batch.
        count: how many messages are its.
        end: source offset behind its last message.
    """

    tp: TP
    first: int
    count: int
    end: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """Messages of the partitions of a topic, to be decoded at once.

    Attributes:
        batch: the messages, numbered in place of their offsets.
        offset: [n] the offset of each in its partition.
        shares: who has which of them.
    """

    batch: SourceBatch
    offset: NDArray[np.int64]
    shares: tuple[Share, ...]

    def of(self, share: Share) -> SourceBatch:
        """Return the messages of one partition, with their offsets in it."""
        mine = slice(share.first, share.first + share.count)
        return replace(self.batch[mine], offset=self.offset[mine])

    def apart(self, decoded: Decoded) -> list[tuple[Share, Decoded]]:
        """Return what became of each partition's messages.

        What was counted is with the first one's: segments of a tick count together anyway.
        """
        ledgers = [decoded.ledger] + [{}] * (len(self.shares) - 1)
        return [
            (
                share,
                Decoded(
                    services=tuple(self._columns(decoded, share)),
                    rejected=tuple(self._rejected(decoded, share)),
                    ledger=ledger,
                    unknown=decoded.unknown,
                ),
            )
            for share, ledger in zip(self.shares, ledgers, strict=True)
        ]

    def _columns(self, decoded: Decoded, share: Share) -> Iterator[Columns]:
        bounds = [share.first, share.first + share.count]
        for columns in decoded.services:
            low, high = np.searchsorted(columns.offset, bounds).tolist()
            if high > low:
                mine = run(columns, low, high)
                yield replace(mine, offset=self.offset[mine.offset])

    def _rejected(self, decoded: Decoded, share: Share) -> Iterator[Rejected]:
        for one in decoded.rejected:
            if 0 <= one.offset - share.first < share.count:
                yield replace(one, offset=int(self.offset[one.offset]))


class Gathering:
    """The waiting messages of each source partition, in order."""

    def __init__(self) -> None:
        self._messages: dict[TP, list[Message]] = {}
        self._bytes: Counter[str] = Counter()

    def add(self, tp: TP, messages: list[Message]) -> bool:
        """Let messages wait; returns whether its topic has enough for a batch."""
        self._messages.setdefault(tp, []).extend(messages)
        self._bytes[tp.topic] += sum(len(message.value or b"") for message in messages)
        return self._bytes[tp.topic] >= BATCH_BYTES

    def end(self, tp: TP) -> int | None:
        """Return the offset behind the last waiting message, None when none waits."""
        waiting = self._messages.get(tp)
        return int(waiting[-1].offset) + 1 if waiting else None

    def __len__(self) -> int:
        return sum(map(len, self._messages.values()))

    @property
    def topics(self) -> list[str]:
        """Return the topics that have messages waiting."""
        return sorted({tp.topic for tp in self._messages})

    def take(self, topic: str, now_ns: int) -> Gathered:
        """Return what waits of a topic, and keep none; no message has arrived later than now."""
        self._bytes.pop(topic, None)
        mine = {tp: self._messages.pop(tp) for tp in list(self._messages) if tp.topic == topic}
        firsts = accumulate(map(len, mine.values()), initial=0)
        shares = tuple(
            Share(tp, first, len(messages), int(messages[-1].offset) + 1)
            for (tp, messages), first in zip(mine.items(), firsts, strict=False)
        )
        return gathered([message for each in mine.values() for message in each], shares, now_ns)

    def forget(self, tp: TP) -> None:
        """Forget what waits of a source partition that is no longer ours."""
        self._messages.pop(tp, None)

    def clear(self) -> None:
        """Forget all."""
        self._messages.clear()
        self._bytes.clear()


def gathered(messages: list[Message], shares: tuple[Share, ...], now_ns: int) -> Gathered:
    """Return messages as columns; none has arrived later than now."""
    plain = batch(messages, now_ns)
    numbered = replace(plain, offset=np.arange(len(messages)))
    return Gathered(numbered, plain.offset, shares)


def batch(messages: list[Message], now_ns: int) -> SourceBatch:
    """Return messages of one partition as columns; none has arrived later than now."""
    count = len(messages)
    sent_ms = np.fromiter(map(_TIMESTAMP, messages), np.int64, count)
    return SourceBatch(
        values=list(map(_VALUE, messages)),
        offset=np.fromiter(map(_OFFSET, messages), np.int64, count),
        arrival_ns=np.minimum(sent_ms * 1_000_000, now_ns),
    )
