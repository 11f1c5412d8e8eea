"""Rows into a table and out of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tailbudget.sinks.clickhouse.connection import Connection


def insert(
    connection: Connection, table: str, columns: Mapping[str, Any], rows: Iterable[Sequence[Any]]
) -> None:
    """Write rows in one request; none makes no request.

    Args:
        connection: to ClickHouse.
        table: its name.
        columns: Arrow type of each column, in the order of the cells.
        rows: the cells of each row.
    """
    values = list(zip(*rows, strict=True))
    if not values:
        return
    arrays = [pa.array(column, kind) for column, kind in zip(values, columns.values(), strict=True)]
    block = pa.table(arrays, list(columns))
    connection.request(f"writing {table}", lambda client: client.insert_arrow(table, block))


def select(
    connection: Connection,
    sql: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    doing: str = "",
) -> list[tuple[Any, ...]]:
    """Return the rows of a query.

    Args:
        connection: to ClickHouse.
        sql: the query.
        parameters: values of the parameters that it names.
        doing: what it is for, for messages; empty: to read the first table that it names.
    """
    doing = doing or f"reading {sql.partition('FROM ')[2].split()[0]}"
    answer = connection.request(
        doing, lambda client: client.query(sql, parameters=dict(parameters or {}))
    )
    return [tuple(row) for row in answer.result_rows]
