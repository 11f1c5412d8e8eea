"""Writing and reading the changes of alerts, and what became of their notices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, Final

import pyarrow as pa

from tailbudget.schemas.alert_rows import ChangeRow, NoticeRow
from tailbudget.sinks.clickhouse.connection import Connection
from tailbudget.sinks.clickhouse.rows import insert, select

_TEXT: Final = pa.string()
_AT: Final = pa.timestamp("ns", "UTC")
_CHANGES: Final = {
    "service": _TEXT,
    "alert": _TEXT,
    "sequence": pa.uint64(),
    "at": _AT,
    **dict.fromkeys(("alert_id", "before", "after", "reason", "detail", "severity"), _TEXT),
    "began": _AT,
    "cleared": _AT,
    "budget_left_pct": pa.float64(),
    "budget_cost_pct": pa.float64(),
    "state": _TEXT,
    "payload": _TEXT,
}
_NOTICES: Final = {
    "service": _TEXT,
    "alert": _TEXT,
    "sequence": pa.uint64(),
    "channel": _TEXT,
    "at": pa.timestamp("ms", "UTC"),
    **dict.fromkeys(("state", "severity", "outcome"), _TEXT),
    "attempts": pa.uint32(),
    "error": _TEXT,
    "handle": _TEXT,
}
_LAST_CHANGES: Final = """
SELECT
    service, alert, sequence, toUnixTimestamp64Nano(at), alert_id, before, after, reason, detail,
    severity, toUnixTimestamp64Nano(began), toUnixTimestamp64Nano(cleared), budget_left_pct,
    budget_cost_pct, state, payload
FROM alert_changes FINAL
WHERE service = {service:String}
ORDER BY alert, sequence DESC, at DESC
LIMIT 1 BY alert
"""
_LAST_NOTICES: Final = """
SELECT
    service, alert, sequence, channel, toUnixTimestamp64Milli(at) * 1000000, state, severity,
    outcome, attempts, error, handle
FROM alert_notices FINAL
WHERE service = {service:String}
ORDER BY alert, channel, sequence DESC
LIMIT 1 BY alert, channel
"""
_WAITING: Final = """
SELECT service
FROM
(
    SELECT service, alert, argMax(after, sequence) AS state
    FROM alert_changes FINAL
    GROUP BY service, alert
)
WHERE state NOT IN ('resolved', 'no_data')
GROUP BY service
ORDER BY service
"""


def write_changes(connection: Connection, changes: Sequence[ChangeRow]) -> None:
    """Write changes; one that is there already is replaced by itself."""
    insert(connection, "alert_changes", _CHANGES, (astuple(row) for row in changes))


def write_notices(connection: Connection, notices: Sequence[NoticeRow]) -> None:
    """Write what became of notices; a later outcome replaces an earlier one."""
    rows = ((*astuple(row)[:4], row.at_ns // 1_000_000, *astuple(row)[5:]) for row in notices)
    insert(connection, "alert_notices", _NOTICES, rows)


def last_changes(connection: Connection, service: str) -> list[ChangeRow]:
    """Return the newest change of each alert of a service, by name."""
    return [ChangeRow(*row) for row in _of(connection, _LAST_CHANGES, service)]


def last_notices(connection: Connection, service: str) -> list[NoticeRow]:
    """Return the newest notice of each alert of a service on each channel."""
    return [NoticeRow(*row) for row in _of(connection, _LAST_NOTICES, service)]


def waiting(connection: Connection) -> list[str]:
    """Return the services with an alert that time alone may move: it fires, say."""
    return [row[0] for row in select(connection, _WAITING, doing="reading open alerts")]


def _of(connection: Connection, sql: str, service: str) -> list[tuple[Any, ...]]:
    return select(connection, sql, {"service": service}, doing=f"reading alerts of {service}")
