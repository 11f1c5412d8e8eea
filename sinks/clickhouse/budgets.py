"""Writing what is left of error budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Final

import pyarrow as pa

from tailbudget.schemas.budgets import BudgetRow
from tailbudget.sinks.clickhouse.connection import Connection
from tailbudget.sinks.clickhouse.rows import insert

_AT: Final = pa.timestamp("ms", "UTC")
_COLUMNS: Final = {
    "service": pa.string(),
    "objective": pa.string(),
    "at": _AT,
    "total": pa.uint64(),
    "bad": pa.uint64(),
    **dict.fromkeys(("target_pct", "left_pct", "corrected_pct", "burn_rate"), pa.float64()),
    "exhausted_at": _AT,
    "status": pa.string(),
}
_MS: Final = 1_000_000


def write_budgets(connection: Connection, rows: Sequence[BudgetRow]) -> None:
    """Write rows; one that is there already is replaced by itself."""
    insert(connection, "budgets", _COLUMNS, map(_in_ms, rows))


def _in_ms(row: BudgetRow) -> tuple[object, ...]:
    values = list(astuple(row))
    values[2] = row.at_ns // _MS
    values[-2] = None if row.exhausted_ns is None else row.exhausted_ns // _MS
    return tuple(values)
