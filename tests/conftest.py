"""What tests share: a broker, an embedded ClickHouse, and a server process of one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_server import ClickHouseServer
from clickhouse_store import fresh_store

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.embedded import EmbeddedBroker


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the broker: that of TAILBUDGET_TEST_BOOTSTRAP, else an embedded one."""
    if given := os.environ.get("TAILBUDGET_TEST_BOOTSTRAP"):
        yield given
        return
    with EmbeddedBroker(log_path=tmp_path_factory.getbasetemp() / "broker.log") as broker:
        yield broker.bootstrap


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


@pytest.fixture(scope="session")
def clickhouse_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClickHouseServer]:
    """A ClickHouse server; a test that stops it takes one of its own."""
    with ClickHouseServer(tmp_path_factory.getbasetemp() / "clickhouse-server") as server:
        yield server


@pytest.fixture(scope="module", params=["chdb", pytest.param("http", marks=pytest.mark.thorough)])
def any_clickhouse(request: pytest.FixtureRequest) -> Path | ClickHouseTarget:
    """Where a ClickHouse is: the embedded engine, and among the thorough tests a server too."""
    if request.param == "chdb":
        path: Path = request.getfixturevalue("clickhouse_path")
        return path
    server: ClickHouseServer = request.getfixturevalue("clickhouse_server")
    return server.target()
