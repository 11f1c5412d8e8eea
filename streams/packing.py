"""Packs: many records travel as one message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

PACK_BYTES: Final = 64 * 1024
PACK_SPAN_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Pack:
    """Records that travel as one message, separated by newlines.

    Attributes:
        value: the records.
        records: how many they are.
        timestamp_ms: the newest of their timestamps.
    """

    value: bytes
    records: int
    timestamp_ms: int


def pack(
    records: Iterable[tuple[bytes, int]], *, max_bytes: int, span_ms: int = PACK_SPAN_MS
) -> Iterator[Pack]:
    """Join (record, timestamp_ms) pairs, in order, into messages of bounded size and time span.

    A record that is larger than `max_bytes` makes a message of its own; so does every record
    when `max_bytes` is 0.
    """
    held: list[bytes] = []
    size = oldest_ms = newest_ms = 0
    for record, timestamp_ms in records:
        spread_ms = max(newest_ms, timestamp_ms) - min(oldest_ms, timestamp_ms)
        if held and (size + len(record) > max_bytes or spread_ms > span_ms):
            yield Pack(b"\n".join(held), len(held), newest_ms)
            held = []
        if not held:
            size, oldest_ms, newest_ms = 0, timestamp_ms, timestamp_ms
        held.append(record)
        size += len(record) + 1
        oldest_ms, newest_ms = min(oldest_ms, timestamp_ms), max(newest_ms, timestamp_ms)
    if held:
        yield Pack(b"\n".join(held), len(held), newest_ms)
