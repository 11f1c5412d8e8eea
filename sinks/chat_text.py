"""Figures, times, names and queries as people are told them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from tailbudget.sinks.report.clean import EMPTY, clean

_COLUMNS: Final = "start, requests, failed, p50_ms, p95_ms, p99_ms"
NAME_LENGTH: Final = 160
"""Characters of a name: the canonical text of a cohort has several names."""

_BEFORE_NS: Final = 600 * 10**9


def query_text(service: str, since_ns: int | None) -> str:
    """Return the SQL that shows a breach: percentiles a minute, from a little before it."""
    where = f"service = '{_literal(service)}' AND stage = 'total'"
    if since_ns is not None:
        where += f" AND start >= '{_clock(since_ns - _BEFORE_NS)}'"
    return f"SELECT {_COLUMNS} FROM latency(window = 60) WHERE {where} ORDER BY start"


def _literal(text: str) -> str:
    """Return the inside of a ClickHouse string: one line, that no fence of Markdown ends."""
    return "".join(_escaped(sign) for sign in text)


def _escaped(sign: str) -> str:
    if sign in "\\'":
        return f"\\{sign}"
    return f"\\x{ord(sign):02x}" if sign == "`" or ord(sign) < 32 else sign


def ms_text(value_ms: float) -> str:
    """Return milliseconds for a person: three digits or so, thousands apart."""
    return f"{value_ms:,.0f} ms" if abs(value_ms) >= 100 else f"{value_ms:.3g} ms"


def time_text(time_ns: int) -> str:
    """Return a time of day in UTC, to the second."""
    return f"{_clock(time_ns)} UTC"


def clock_text(time_ns: int) -> str:
    """Return a time of day in UTC without its date."""
    return _clock(time_ns)[11:]


def _clock(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def code_text(text: str) -> str:
    """Return a name set as code: one line, and no sign in it is read as Markdown."""
    return f"`{clean(text, NAME_LENGTH).replace('`', chr(39)) or EMPTY}`"
