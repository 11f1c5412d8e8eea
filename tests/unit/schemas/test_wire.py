"""The head of a message and a body that lies, sealed with a right checksum."""

from __future__ import annotations

import re
import struct
from typing import Any
from zlib import crc32

import cramjam
import numpy as np
import pytest

from tailbudget.models.select import empty
from tailbudget.schemas.errors import WireError
from tailbudget.schemas.packing import Reader, Writer
from tailbudget.schemas.wire import decode, encode

EMPTY = empty("chat", ledger={(0, "late"): 2})


def _body(message: bytes) -> bytearray:
    return bytearray(bytes(cramjam.zstd.decompress(message[11:])))


def _sealed(body: bytes, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return struct.pack("<2sBII", b"TB", 2, crc32(body), size) + bytes(cramjam.zstd.compress(body))


def test_an_empty_summary_is_small() -> None:
    """A ledger without requests takes few bytes."""
    assert len(encode(EMPTY)) < 250
    assert decode(encode(EMPTY)).ledger == {(0, "late"): 2}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "does not begin with TB"),
        (b"XX" + encode(EMPTY)[2:], "does not begin with TB"),
        (b"TB\x09" + encode(EMPTY)[3:], "version 9, this program reads version 2"),
        (b"TB\x02" + bytes(4) + b"\xff\xff\xff\xff" + b"x", "at most 268435456 are allowed"),
        (encode(EMPTY)[:-4], "does not decompress"),
        (_sealed(b"{}", length=3), "checksum is wrong"),
        (_sealed(b"\xff\xff\xff\xff"), "cut short"),
        (_sealed(struct.pack("<I", 2) + b"{["), "names are damaged"),
        (_sealed(struct.pack("<I", 2) + b"{}"), "the summary is damaged"),
        (_sealed(bytes(_body(encode(EMPTY))) + b"x"), "1 bytes too many"),
    ],
)
def test_the_error_names_what_is_wrong(message: bytes, reason: str) -> None:
    """Each kind of damage is named."""
    with pytest.raises(WireError, match=re.escape(reason)):
        decode(message)


def test_a_lying_body_never_crashes() -> None:
    """Every byte of a body changed in several ways and sealed again: an error or a summary."""
    body = _body(encode(EMPTY))
    for at in range(len(body)):
        for change in (1, 0x80, 0xFF):
            lie = bytearray(body)
            lie[at] ^= change
            try:
                decode(_sealed(bytes(lie)))
            except WireError:
                continue


def test_huge_lengths_allocate_nothing() -> None:
    """A count beyond the limit is refused before memory is asked for."""
    writer = Writer()
    writer.integers(np.zeros(1 << 20, np.int64))
    reader = Reader(writer.finish()[:17] + struct.pack("<Q", 1 << 40))
    with pytest.raises(WireError, match="at most 16777216 are allowed"):
        reader.integers(np.int64, 1 << 40)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0.0],
        [-0.0, 1.5],
        [np.nan, np.inf, -np.inf, 12.345],
        [np.nan, 1e300, 5e-324],
        [0.1 + 0.2, 1 / 3],
        [1e15, 0.001],
        [123456.789, -5.25],
    ],
)
def test_floats_keep_every_bit(values: list[float]) -> None:
    """Decimals, specials and arbitrary floats come back with the same bits."""
    array = np.array(values, np.float64)
    writer = Writer()
    writer.floats(array)
    reader = Reader(writer.finish())
    assert reader.floats(len(array)).tobytes() == array.tobytes()
    reader.done()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int16, np.uint8])
def test_whole_numbers_keep_their_extremes(dtype: Any) -> None:
    """The smallest and largest numbers of each type survive together and alone."""
    info = np.iinfo(dtype)
    for values in ([info.min, info.max], [info.max], [info.min], []):
        writer = Writer()
        writer.integers(np.array(values, dtype))
        found = Reader(writer.finish()).integers(dtype, len(values))
        assert found.tolist() == values
        assert found.dtype == dtype
