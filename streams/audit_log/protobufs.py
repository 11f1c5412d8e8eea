"""Messages of protocol buffers in a file, a block at a time.

Two ways are read: as the collector's file exporter writes them, each behind its length in four
bytes, the highest first; and one `TracesData` as it is, of which each `ResourceSpans` (field 1) is
taken for a message, so that a file of any length needs little memory. The first byte tells them
apart: as the highest of a length, the tag of field 1 would mean more than is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Final

import numpy as np

from tailbudget.schemas.errors import DecodeError
from tailbudget.streams.audit_log.blocks import LineBlock
from tailbudget.streams.sources.translated import MAX_CONTAINER

_TAG: Final = 0x0A
_LENGTH: Final = 4
_BLOCK_BYTES: Final = 1 << 22


def is_protobuf(head: bytes) -> bool:
    """Return whether text begins as traces in protocol buffers do."""
    if len(head) > _LENGTH and head[_LENGTH] == _TAG:
        size = int.from_bytes(head[:_LENGTH], "big")
        if 1 < size <= MAX_CONTAINER:
            return True
    return head[:1] == bytes([_TAG]) and b"\0" in head[:4096]


def protobuf_blocks(stream: IO[bytes], format_name: str, name: str) -> Iterator[LineBlock]:
    """Yield the messages, numbered from 0.

    Args:
        stream: the bytes.
        format_name: of the messages.
        name: of the file, for messages to people.

    Raises:
        DecodeError: a message does not end, or is longer than is read.
    """
    values: list[bytes] = []
    first = size = 0
    for value in _messages(stream, name):
        values.append(value)
        size += len(value)
        if size >= _BLOCK_BYTES:
            yield _block(format_name, values, first)
            first, size, values = first + len(values), 0, []
    if values:
        yield _block(format_name, values, first)


def _block(format_name: str, values: list[bytes], first: int) -> LineBlock:
    end = first + len(values)
    return LineBlock(format_name, values, np.arange(first, end), end)


def _messages(stream: IO[bytes], name: str) -> Iterator[bytes]:
    number = 0
    start = stream.read(1)
    plain = start == bytes([_TAG])
    while start:
        number += 1
        begin, length = _fields(stream, start) if plain else _framed(stream, start)
        if not length or length > MAX_CONTAINER:
            raise _damaged(name, number, "has no length that is read")
        body = stream.read(length)
        if len(body) < length:
            raise _damaged(name, number, f"ends {length - len(body):,} bytes early")
        yield begin + body
        start = stream.read(1)


def _framed(stream: IO[bytes], start: bytes) -> tuple[bytes, int | None]:
    rest = stream.read(_LENGTH - 1)
    return b"", int.from_bytes(start + rest, "big") if len(rest) == _LENGTH - 1 else None


def _fields(stream: IO[bytes], start: bytes) -> tuple[bytes, int | None]:
    """Read the length of a field 1, seven bits a byte, the lowest first."""
    begin, length = start, 0
    if start != bytes([_TAG]):
        return begin, None
    for shift in range(0, 35, 7):
        byte = stream.read(1)
        if not byte:
            return begin, None
        begin += byte
        length |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return begin, length
    return begin, None


def _damaged(name: str, number: int, what: str) -> DecodeError:
    return DecodeError(
        f"{name}: message {number:,} {what}",
        remedy="give what the collector's file exporter writes with format: proto and without"
        " compression, or one TracesData",
    )
