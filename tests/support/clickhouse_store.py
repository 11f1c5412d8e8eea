"""Fresh databases in the ClickHouse of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.sinks.clickhouse import ClickHouse


@contextmanager
def fresh_store(where: Path | ClickHouseTarget) -> Iterator[ClickHouse]:
    """Open a new, migrated database in the engine of a directory, or on a server."""
    target = ClickHouseTarget("chdb", path=where) if isinstance(where, Path) else where
    store = ClickHouse.open(replace(target, database=f"test_{uuid4().hex[:12]}"))
    try:
        store.migrate()
        yield store
    finally:
        store.close()
