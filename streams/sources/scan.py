"""Counting the keys of a joined batch at memory speed, and naming the keys of its records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

_COLON: Final = ord(":")
_QUOTE: Final = ord('"')
_SPACE: Final = ord(" ")
_N: Final = ord("n")
_BLOCK: Final = 1 << 18  # the temporaries stay in the processor's cache

_Letters = NDArray[np.uint8]
_Mask = NDArray[np.bool_]


def count_keys(blob: bytes) -> int:
    """Return an upper bound of the keys in JSON text; mostly it is exact.

    Counts the colons that follow a quote, white space or "!": a key's colon follows its quote or
    white space, always.
    """
    return sum(int(np.count_nonzero(hit)) for _, hit in _colons(np.frombuffer(blob, np.uint8)))


def count_nulls(blob: bytes) -> int:
    """Return how many of the keys that `count_keys` counts have null, or fewer.

    Counts those of `":n` and `": n`: a value that begins with an n is null. What else of them is
    counted stands inside a string, where neither function takes off more than the other adds.
    """
    letters = np.frombuffer(blob, np.uint8)
    return sum(_nulls(letters, np.flatnonzero(hit) + low) for low, hit in _colons(letters))


def _colons(letters: _Letters) -> Iterator[tuple[int, _Mask]]:
    """Yield (place of the first letter, [k] which of the next letters are such colons)."""
    hit, may = np.empty(_BLOCK, np.bool_), np.empty(_BLOCK, np.bool_)
    for low in range(1, len(letters), _BLOCK):
        block = letters[low : low + _BLOCK]
        size = len(block)
        np.equal(block, _COLON, out=hit[:size])
        np.less_equal(letters[low - 1 : low - 1 + size], _QUOTE, out=may[:size])
        yield low, np.logical_and(hit[:size], may[:size], out=hit[:size])


def _nulls(letters: _Letters, colons: NDArray[np.intp]) -> int:
    """Count the values that follow these colons, or one space behind them, and are null."""
    last = len(letters) - 1
    at = colons[letters[colons - 1] == _QUOTE] + 1
    head = letters[np.minimum(at, last)]
    after = letters[np.minimum(at[head == _SPACE] + 1, last)]
    return int(np.count_nonzero(head == _N) + np.count_nonzero(after == _N))


def may_hold_more(blob: bytes, frame: pl.DataFrame, cells: int) -> bool:
    """Return whether the text may hold values that are not among the `cells` read from it.

    Never false where it does: each step takes off what is certainly no key of an unread value.
    First the nulls, then what looks like a key inside of texts and of nested objects, which polars
    gives as text; that only where no escape could make the text look different from the source.
    """
    spare = count_keys(blob) - cells
    if spare:
        spare -= count_nulls(blob)
    if spare and b"\\u" not in blob:
        spare -= _inner_keys(frame)
    return spare != 0


def _inner_keys(frame: pl.DataFrame) -> int:
    texts = pl.col(pl.String).str
    like_keys = frame.select(texts.count_matches('[" !]:').sum()).row(0)
    like_nulls = frame.select(texts.count_matches('": ?n').sum()).row(0)
    return int(sum(like_keys) - sum(like_nulls))


def keys(lines: Iterable[bytes]) -> set[str]:
    """Return the names of all cells of all records that are not null."""
    found: set[str] = set()
    for line in lines:
        record = _loads(line)
        if None in record.values():
            found.update(name for name, value in record.items() if value is not None)
        else:
            found.update(record)
    return found


def _loads(line: bytes) -> dict[str, object]:
    """Read a line that polars has read as an object."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:  # half a surrogate pair, which the others accept
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return {}
    return record if isinstance(record, dict) else {}
