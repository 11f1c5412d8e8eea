"""The slow path for one line that the fast reader refused: mend it, or say what is wrong.

JSON has no NaN, no infinity and no way to say "this was no number", so a mended line carries
stand-ins, which the judge of the columns reads back.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tailbudget.schemas import ledger

NOT_FINITE: Final = 1.0e308
"""Stands for NaN and infinity; any number beyond `HUGE` is read so."""

NOT_A_NUMBER: Final = 1.5e308
"""Stands for a value that is no number at all."""

HUGE: Final = 1.0e300

BOM: Final = b"\xef\xbb\xbf"
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_NO_NUMBER: Final = frozenset({"nan", "inf", "infinity"})


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a line is no record.

    Attributes:
        reason: one of the "rejected.*" reasons.
        detail: what was found.
    """

    reason: str
    detail: str


def mend(line: bytes, numbers: Sequence[str]) -> bytes | Fault:
    """Return the line as the fast reader takes it, or why it is no record.

    Strips a byte-order mark, replaces NaN and infinities, and reads numbers that were written as
    strings ("12.5", but not "12.5ms" or "1,250.0"). A line without fault is returned as it is.

    Args:
        line: the text of one record.
        numbers: columns that are read as numbers.
    """
    if _is_sound(line, numbers):
        return line
    try:
        text = line.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        found = line[error.start : error.start + 4].hex(" ")
        return Fault(ledger.NOT_UTF8, f"byte {error.start}: {found} is not UTF-8")
    try:
        record = read(text)
    except (ValueError, RecursionError) as error:
        return Fault(ledger.NOT_JSON, str(error))
    if not isinstance(record, dict):
        return Fault(ledger.NOT_OBJECT, f"a JSON {_KIND.get(type(record), 'value')}, no object")
    for name in record.keys() & set(numbers):
        record[name] = as_number(record[name])
    return json.dumps(record, separators=(",", ":")).encode()


def _is_sound(line: bytes, numbers: Sequence[str]) -> bool:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(record, dict) and all(type(record.get(name)) in _PLAIN for name in numbers)


def read(text: str) -> Any:
    """Read JSON as leniently as records are written; of equal keys the first counts."""
    return _DECODER.decode(text)


def as_number(value: Any) -> float | None:
    """Return a number, None for a blank, or a stand-in."""
    if value is None or type(value) in {int, float}:
        return _finite(value)
    if not isinstance(value, str):
        return NOT_A_NUMBER
    word = value.strip().lower()
    if _NUMBER.fullmatch(value):
        return _finite(float(value))
    if word.lstrip("+-") in _NO_NUMBER:
        return NOT_FINITE
    return NOT_A_NUMBER if word else None


def _finite(value: float | None) -> float | None:
    try:
        return value if value is None or math.isfinite(value) else NOT_FINITE
    except OverflowError:  # an integer of hundreds of digits
        return NOT_FINITE


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, value in pairs:
        record.setdefault(name, value)
    return record


def _parse_float(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else NOT_FINITE


_PLAIN: Final = frozenset({int, float, type(None)})
_KIND: Final[dict[type, str]] = {
    list: "list",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_first_wins,
    parse_float=_parse_float,
    parse_constant=lambda _: NOT_FINITE,
)
