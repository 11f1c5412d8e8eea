"""Writing and reading silences."""

from __future__ import annotations

from dataclasses import astuple
from typing import Final

import pyarrow as pa

from tailbudget.schemas.silences import Silence
from tailbudget.sinks.clickhouse.connection import Connection
from tailbudget.sinks.clickhouse.rows import insert, select

_AT: Final = pa.timestamp("ms", "UTC")
_COLUMNS: Final = {
    **dict.fromkeys(("id", "service", "alert"), pa.string()),
    "begins": _AT,
    "ends": _AT,
    "reason": pa.string(),
    "version": pa.uint64(),
}
_MS: Final = 1_000_000
_SELECT: Final = """
SELECT
    id, service, alert, toUnixTimestamp64Milli(begins) * 1000000,
    toUnixTimestamp64Milli(ends) * 1000000, reason, version
FROM silences FINAL
WHERE toUnixTimestamp64Milli(ends) > {after:Int64}
ORDER BY ends, id
"""


def write_silence(connection: Connection, silence: Silence) -> None:
    """Write a silence; a newer version replaces an older one."""
    values = astuple(silence)
    row = (*values[:3], silence.begins_ns // _MS, silence.ends_ns // _MS, *values[5:])
    insert(connection, "silences", _COLUMNS, [row])


def silences(connection: Connection, after_ns: int) -> list[Silence]:
    """Return the silences that end after a time, the first to end first."""
    rows = select(connection, _SELECT, {"after": after_ns // _MS})
    return [Silence(*row) for row in rows]
