"""Durations as text, such as 5m, 6h or 30d."""

from __future__ import annotations

import re
from typing import Final

UNIT_S: Final = {
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86_400,
    "w": 604_800,
    "M": 30 * 86_400,
    "Q": 90 * 86_400,
    "Y": 365 * 86_400,
}
"""Seconds of each unit; a month, a quarter and a year that roll are 30, 90 and 365 days."""

_TEXT: Final = re.compile(r"^([1-9]\d{0,5})([smhdwMQY])$")


def parse_duration(text: str) -> tuple[int, str]:
    """Return the count and the unit of a text such as 30d; case matters, m is a minute.

    Raises:
        ValueError: it is no such text.
    """
    match = _TEXT.match(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration such as 5m, 6h, 30d or 1M")
    return int(match[1]), match[2]


def duration_s(text: str) -> int:
    """Return the seconds of a text such as 6h.

    Raises:
        ValueError: it is no duration.
    """
    count, unit = parse_duration(text)
    return count * UNIT_S[unit]


def duration_text(seconds: int) -> str:
    """Return seconds in the largest unit up to a day that divides them, such as 6h."""
    unit = next(name for name in ("d", "h", "m", "s") if seconds % UNIT_S[name] == 0)
    return f"{seconds // UNIT_S[unit]}{unit}"
