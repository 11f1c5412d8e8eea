"""Counting the keys of a joined batch at memory speed, and naming the keys of its records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

_COLON: Final = np.uint16(0x3A00)
_QUOTE: Final = np.uint16(0x22)
_QUOTED: Final = np.uint16(0x3A22)
_SPACE: Final = ord(" ")
_N: Final = ord("n")
_BLOCK: Final = 1 << 15  # the temporaries stay in the processor's cache


def count_values(blob: bytes) -> int:
    """Return an upper bound of the values in JSON text that are not null; mostly it is exact.

    Counts the colons that follow a quote, white space or "!", less those of `":n` and `": n`.
    A key's colon follows its quote or white space, always, and a value that begins with an n is
    null; what else is counted stands inside a string, where neither takes off more than it adds.
    """
    total = 0
    letters = np.frombuffer(blob, np.uint8)
    rest, hit = np.empty(_BLOCK, np.uint16), np.empty(_BLOCK, np.bool_)
    for start in range(min(len(blob), 2)):
        pairs = np.frombuffer(blob, "<u2", count=(len(blob) - start) // 2, offset=start)
        for first in range(0, len(pairs), _BLOCK):  # low byte: a letter; high byte: the next one
            block = pairs[first : first + _BLOCK]
            size = len(block)
            np.subtract(block, _COLON, out=rest[:size])
            found = np.flatnonzero(np.less_equal(rest[:size], _QUOTE, out=hit[:size]))
            total += len(found)
            quoted = found[block[found] == _QUOTED]
            total -= _nulls(letters, 2 * (quoted + first) + start + 2)
    return total


def _nulls(letters: NDArray[np.uint8], at: NDArray[np.intp]) -> int:
    """Count the values that begin at these places, or one behind a space, and are null."""
    last = len(letters) - 1
    head = letters[np.minimum(at, last)]
    spaced = at[head == _SPACE] + 1
    after = letters[np.minimum(spaced, last)]
    return int(np.count_nonzero(head == _N) + np.count_nonzero(after == _N))


def may_hold_more(blob: bytes, frame: pl.DataFrame, cells: int) -> bool:
    """Return whether the text may hold values that are not among the `cells` read from it.

    Never false where it does: each step takes off what is certainly no key of an unread value.
    First the nulls, then what looks like a key inside of texts and of nested objects, which polars
    gives as text; that only where no escape could make the text look different from the source.
    """
    spare = count_values(blob) - cells
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
