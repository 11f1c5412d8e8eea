"""Durations as programs print them: a number with its unit, such as "35.1ms" or "1.2s"."""

from __future__ import annotations

import re
from typing import Final

_MS_PER: Final = {
    "ns": 1e-6,
    "us": 1e-3,
    "µs": 1e-3,
    "μs": 1e-3,
    "ms": 1.0,
    "s": 1e3,
    "m": 60e3,
    "h": 3_600e3,
}
_PART: Final = re.compile(rf"(\d{{1,15}}(?:\.\d+)?)({'|'.join(_MS_PER)})(?=\d|$)")
_LONGEST: Final = 40


def written_ms(text: str | None) -> float | None:
    """Return milliseconds of a printed duration ("1m2.5s" too); None where it is none."""
    bare = (text or "").strip()
    parts = _PART.findall(bare[:_LONGEST])
    if not parts or sum(len(n) + len(unit) for n, unit in parts) != len(bare):
        return None
    return round(sum(float(n) * _MS_PER[unit] for n, unit in parts), 9)
