"""Fresh databases in the embedded ClickHouse of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.sinks.clickhouse import ClickHouse


@contextmanager
def fresh_store(path: Path) -> Iterator[ClickHouse]:
    """Open a new, migrated database in the engine of a directory."""
    target = ClickHouseTarget("chdb", database=f"test_{uuid4().hex[:12]}", path=path)
    store = ClickHouse.open(target)
    try:
        store.migrate()
        yield store
    finally:
        store.close()
