"""Writing and reading panes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa

from tailbudget.schemas.rows import StoredPane
from tailbudget.sinks.clickhouse.columns import NAMES, Part, arrow_table, row_count
from tailbudget.sinks.clickhouse.connection import Client, Connection
from tailbudget.sinks.clickhouse.pack import pack
from tailbudget.sinks.clickhouse.unpack import unpack

MAX_ROWS: Final = 20_000
"""Rows an insert, of a kilobyte or two; a single pane with more is still one insert."""
MAX_MONTHS: Final = 12
"""Partitions an insert; each becomes a part of its own (the server's own limit is 100)."""

_SECOND_NS: Final = 1_000_000_000
_SELECT: Final = ", ".join(
    ["toUnixTimestamp(pane) AS pane", *(name for name in NAMES if name != "pane")]
)
_SIZES: Final = """
SELECT toUnixTimestamp(pane) AS start, count()
FROM panes
WHERE service = {service:String} AND pane IN {panes:Array(UInt32)}
GROUP BY start
ORDER BY start
"""
_ROWS: Final = f"""
SELECT {_SELECT}
FROM panes FINAL
WHERE service = {{service:String}} AND panes.pane IN {{panes:Array(UInt32)}}
"""


def write_panes(connection: Connection, panes: Sequence[StoredPane]) -> None:
    """Write panes; each is there whole or not at all, and writing it again changes nothing.

    Raises:
        ClickHouseError: it may work later; some inserts may have happened.
        StorageError, ConfigError: it can't work.
    """
    for batch in batches(panes):
        block = arrow_table(batch)
        connection.request("writing panes", partial(_insert, block=block))


def batches(panes: Sequence[StoredPane]) -> Iterator[list[dict[str, Part]]]:
    """Yield the columns of panes, cut into inserts of bounded rows and partitions."""
    batch: list[dict[str, Part]] = []
    rows = 0
    months: set[int] = set()
    for pane in sorted(panes, key=lambda pane: pane.pane_ns):
        parts = pack(pane)
        size, month = row_count(parts), _month(pane.pane_ns)
        full = rows + size > MAX_ROWS or len(months | {month}) > MAX_MONTHS
        if batch and full:
            yield batch
            batch, rows, months = [], 0, set()
        batch.append(parts)
        rows += size
        months.add(month)
    if batch:
        yield batch


def read_panes(
    connection: Connection, service: str, panes_ns: Sequence[int]
) -> dict[int, StoredPane]:
    """Return the newest version of those panes of a service that exist.

    Raises:
        ClickHouseError: it may work later.
    """
    if not panes_ns:
        return {}
    seconds = sorted({pane_ns // _SECOND_NS for pane_ns in panes_ns})
    return {pane.pane_ns: pane for pane in _read(connection, service, seconds)}


def each_pane(
    connection: Connection, service: str, panes_ns: Sequence[int]
) -> Iterator[StoredPane]:
    """Yield the newest version of those panes that exist, in order, a bounded number in memory.

    Raises:
        ClickHouseError: it may work later.
    """
    seconds = sorted({pane_ns // _SECOND_NS for pane_ns in panes_ns})
    return _read(connection, service, seconds)


def newest_pane(connection: Connection, service: str) -> int | None:
    """Return the start of a service's newest pane in nanoseconds; None when it has none."""
    sql = (
        "SELECT toUInt32(max(pane)), count() FROM panes"
        " WHERE service = {service:String} AND stage = '(pane)'"
    )
    answer = connection.request(
        f"looking for the newest pane of {service}",
        lambda client: client.query(sql, parameters={"service": service}),
    )
    newest_s, count = answer.result_rows[0]
    return int(newest_s) * _SECOND_NS if count else None


def services(connection: Connection) -> list[str]:
    """Return the names of the services that have panes, in order."""
    sql = "SELECT DISTINCT service FROM panes WHERE stage = '(pane)' ORDER BY service"
    answer = connection.request("looking for services", lambda client: client.query(sql))
    return [str(name) for (name,) in answer.result_rows]


def _read(connection: Connection, service: str, seconds: Sequence[int]) -> Iterator[StoredPane]:
    """Yield panes in order, asking for a bounded number of rows at once."""
    doing = f"reading panes of {service}"
    wanted = {"service": service, "panes": seconds}
    sizes = connection.request(doing, lambda client: client.query(_SIZES, parameters=wanted))
    for span in _spans(sizes.result_rows):
        rows = partial(_rows, parameters={"service": service, "panes": span})
        yield from unpack(connection.request(doing, rows))


def _insert(client: Client, block: pa.Table) -> None:
    client.insert_arrow("panes", block)


def _rows(client: Client, parameters: Mapping[str, Any]) -> pa.Table:
    return _plain(client.query_arrow(_ROWS, parameters=parameters))


def _spans(sizes: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Cut (pane, rows) pairs into runs of at most `MAX_ROWS` rows, or one pane."""
    run: list[int] = []
    rows = 0
    for second, size in sizes:
        if run and rows + size > MAX_ROWS:
            yield run
            run, rows = [], 0
        run.append(second)
        rows += size
    if run:
        yield run


def _plain(table: pa.Table) -> pa.Table:
    """Undo dictionary encoding, which a server may choose for LowCardinality."""
    for place, (name, kind) in enumerate(zip(table.column_names, table.schema.types, strict=True)):
        if pa.types.is_dictionary(kind):
            table = table.set_column(place, name, table[name].cast(kind.value_type))
    return table


def _month(pane_ns: int) -> int:
    """A number that changes at least as often as the UTC month, for bounding partitions."""
    return pane_ns // (28 * 86_400 * _SECOND_NS)
