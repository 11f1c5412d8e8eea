"""What hardware, engines and platforms measure of themselves, kept in ClickHouse.

A message is one JSON object, or many of them on lines of their own: service, instance, timestamp,
name and value. A value is stored under its own time, so that redelivery changes nothing.
"""

from __future__ import annotations

import math
from typing import Any, Final

import orjson

from tailbudget.schemas.anomaly_rows import SignalRow
from tailbudget.streams.agents.events import Kind
from tailbudget.streams.sources.timetext import UNREADABLE, epoch_ns

_LONGEST: Final = 200


def signal_row(line: bytes) -> SignalRow:
    """Return the value in a line.

    Raises:
        ValueError: it is no JSON object, or lacks service, name, a time or a finite value.
    """
    said = orjson.loads(line)
    if not isinstance(said, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  (the caller handles bad values alike)
    missing = [name for name in ("service", "name") if not _is_name(said.get(name))]
    at_ns = epoch_ns(str(said.get("timestamp", "")))
    value = _number(said.get("value"))
    if at_ns == UNREADABLE:
        missing.append("a timestamp")
    if value is None:
        missing.append("a finite value")
    if missing or value is None:
        raise ValueError(f"lacks {', '.join(missing)}")
    instance = str(said.get("instance") or "")[:_LONGEST]
    return SignalRow(said["service"], instance, said["name"], at_ns // 1_000_000, value)


def _number(value: Any) -> float | None:
    """Return a finite number; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST


SIGNALS: Final = Kind(
    "not a signal", signal_row, '{"service", "instance", "timestamp", "name", "value"}', lines=True
)
