"""The sink's own tests run over both interfaces of ClickHouse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_store import fresh_store

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.sinks.clickhouse import ClickHouse


@pytest.fixture
def clickhouse(any_clickhouse: Path | ClickHouseTarget) -> Iterator[ClickHouse]:
    """A fresh, migrated database, embedded and then on a server."""
    with fresh_store(any_clickhouse) as store:
        yield store
