"""The embedded ClickHouse that tests share: a process can open one directory only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.sinks.clickhouse import ClickHouse


@pytest.fixture(scope="session")
def clickhouse_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of the one embedded engine of this process, kept open."""
    path = tmp_path_factory.getbasetemp() / "clickhouse"
    engine = ClickHouse.open(ClickHouseTarget("chdb", database="keep", path=path))
    yield path
    engine.close()


@pytest.fixture
def clickhouse(clickhouse_path: Path) -> Iterator[ClickHouse]:
    """An embedded ClickHouse with a fresh, migrated database."""
    target = ClickHouseTarget("chdb", database=f"test_{uuid4().hex[:12]}", path=clickhouse_path)
    store = ClickHouse.open(target)
    store.migrate()
    yield store
    store.close()
