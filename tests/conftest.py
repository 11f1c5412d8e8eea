"""The embedded ClickHouse that tests share: a process can open one directory only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_store import fresh_store

from tailbudget.sinks.clickhouse import ClickHouse


@pytest.fixture(scope="module")
def clickhouse_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of the embedded engine, kept open while a module's tests run."""
    path = tmp_path_factory.getbasetemp() / "clickhouse"
    with fresh_store(path):
        yield path


@pytest.fixture
def clickhouse(clickhouse_path: Path) -> Iterator[ClickHouse]:
    """An embedded ClickHouse with a fresh, migrated database."""
    with fresh_store(clickhouse_path) as store:
        yield store
