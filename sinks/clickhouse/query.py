"""Read-only SQL for people and programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tailbudget.schemas.errors import ConfigError
from tailbudget.sinks.clickhouse.connect import SESSION
from tailbudget.sinks.clickhouse.connection import Connection
from tailbudget.sinks.clickhouse.errors import RETRYABLE, classify, error_code
from tailbudget.sinks.clickhouse.statement import reading_statement

MAX_ROWS: Final = 100_000
"""No answer has more rows, whatever is asked for."""

READING: Final = SESSION | {
    "output_format_json_quote_64bit_integers": "0",
    "output_format_json_quote_denormals": "0",
    "max_result_rows": str(MAX_ROWS + 1),
    "result_overflow_mode": "break",
    "max_execution_time": "60",
    # A query never takes the memory of the worker that it runs beside.
    "max_memory_usage": "2000000000",
    # Last: it forbids any further change of settings.
    "readonly": "1",
}
_TOO_MUCH: Final = frozenset({159, 241, 396})
"""TIMEOUT_EXCEEDED, MEMORY_LIMIT_EXCEEDED, TOO_MANY_ROWS_OR_BYTES."""
_DENIED: Final = frozenset({164, 497})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query returned; every value fits JSON, and what is not a number is None.

    Attributes:
        columns: names of the columns.
        types: their ClickHouse types.
        rows: the rows.
        truncated: there were more rows than were allowed.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    truncated: bool

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as mappings from column to value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def run(
    reader: Connection,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    max_rows: int = 10_000,
) -> Answer:
    """Run one statement that only reads.

    Args:
        reader: a connection with the settings `READING`.
        sql: the statement; `{name:Type}` stands for a parameter.
        parameters: their values.
        max_rows: rows to return at most.

    Raises:
        ConfigError: the statement is wrong, or more than reading.
        ClickHouseError: the server does not answer, or the query took too long.
    """
    statement = reading_statement(sql)
    try:
        raw = reader.attempt(
            lambda client: client.raw_query(
                statement, parameters=dict(parameters or {}), fmt="JSONCompact"
            )
        )
    except Exception as error:
        code = error_code(error)
        if code is None or (code in RETRYABLE and code not in _TOO_MUCH):
            raise classify(error, "the query") from error
        raise ConfigError(_first_line(error), remedy=_remedy(code)) from error
    found = json.loads(raw)
    limit = min(max_rows, MAX_ROWS)
    return Answer(
        columns=tuple(column["name"] for column in found["meta"]),
        types=tuple(column["type"] for column in found["meta"]),
        rows=tuple(tuple(row) for row in found["data"][:limit]),
        truncated=len(found["data"]) > limit,
    )


def _remedy(code: int) -> str:
    if code in _TOO_MUCH:
        return "ask for a shorter time range, or fewer services"
    if code in _DENIED:
        return "only reading is allowed, with the settings as they are"
    return "docs/sql.md has queries that work; DESCRIBE panes lists the columns"


def _first_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text.removesuffix(".")
