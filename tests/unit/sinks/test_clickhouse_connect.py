"""Connections: one code path for both engines, and what is said when there is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace

import pytest
from clickhouse_http import HANG_UP, Server, serving
from clickhouse_store import fresh_store
from random_records import random_columns, stored_panes
from same_values import assert_same

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.errors import ClickHouseError, ConfigError, StorageError
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.connect import require_nearest_rank
from tailbudget.sinks.clickhouse.connection import Connection

SECOND_PROCESS = """
import sys
from pathlib import Path
from tailbudget.schemas.errors import ConfigError
from tailbudget.sinks.clickhouse import ClickHouse, ClickHouseTarget
try:
    ClickHouse.open(ClickHouseTarget("chdb", path=Path(sys.argv[1])))
except ConfigError as error:
    print(error)
    sys.exit(error.exit_status)
"""


@pytest.fixture
def clickhouse(clickhouse_path: Path) -> Iterator[ClickHouse]:
    """The embedded engine alone: the tests here put their own server beside it."""
    with fresh_store(clickhouse_path) as store:
        yield store


@pytest.fixture
def server(clickhouse_path: Path) -> Iterator[Server]:
    """An HTTP server over the embedded engine."""
    with serving(clickhouse_path) as shared:
        yield shared


@pytest.fixture
def target(server: Server, clickhouse: ClickHouse) -> ClickHouseTarget:
    """How to reach it, with a migrated database of this test's own."""
    return ClickHouseTarget(
        "http",
        port=server.port,
        password=server.password,
        database=clickhouse.target.database,
        request_timeout_s=30,
    )


@pytest.fixture
def remote(target: ClickHouseTarget) -> Iterator[ClickHouse]:
    """A connection over HTTP."""
    store = ClickHouse.open(target)
    yield store
    store.close()


def test_a_server_and_the_embedded_engine_are_one_code_path(
    remote: ClickHouse, clickhouse: ClickHouse
) -> None:
    """What is written over HTTP is read embedded, and the other way round, to the last bit."""
    panes = stored_panes(random_columns(1, 300, span_s=20))
    remote.write_panes(panes)
    for store in (remote, clickhouse):
        found = store.read_panes("chat", [pane.pane_ns for pane in panes])
        for pane in panes:
            assert_same(pane, found[pane.pane_ns])
    query = "SELECT * FROM latency(window = 60) ORDER BY stage"
    assert remote.query(query) == clickhouse.query(query)
    assert remote.query("SELECT {x:String} AS x", {"x": "é"}).rows == (("é",),)
    assert remote.incarnation("t", "id") == clickhouse.incarnation("t", "id") == 1
    assert remote.migrate() == []


def test_a_server_is_read_only_for_queries(remote: ClickHouse) -> None:
    """The reading connection cannot write there either."""
    with pytest.raises(ConfigError):
        remote.query("WITH 1 AS x INSERT INTO audits (service) SELECT 'x'")
    with pytest.raises(ConfigError):
        remote.query("SELECT 1 SETTINGS readonly = 0")


def test_too_many_parts_once_loses_and_doubles_nothing(remote: ClickHouse, server: Server) -> None:
    """The server refuses with code 252, then accepts: every pane is there once."""
    panes = stored_panes(random_columns(2, 300, span_s=60))
    server.faults.append((500, 252))
    with pytest.raises(ClickHouseError):
        remote.write_panes(panes)
    remote.write_panes(panes)
    assert len(server.inserts) == 2
    assert remote.query("SELECT sum(requests) FROM latency(window = 60)").rows == ((300,),)


def test_a_lost_answer_loses_and_doubles_nothing(remote: ClickHouse, server: Server) -> None:
    """The insert was done and the connection broke: it is done again, and counts once."""
    panes = stored_panes(random_columns(3, 200, span_s=10))
    server.faults.append(HANG_UP)
    with pytest.raises(ClickHouseError):
        remote.write_panes(panes)
    remote.write_panes(panes)
    assert remote.query("SELECT sum(requests) FROM latency(window = 60)").rows == ((200,),)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [((500, 241), ClickHouseError), ((502, 209), ClickHouseError), ((500, 243), StorageError)],
)
def test_a_servers_code_is_classed(
    remote: ClickHouse, server: Server, fault: tuple[int, int], kind: type[Exception]
) -> None:
    """The number in the header decides, whatever the status."""
    server.faults.append(fault)
    with pytest.raises(kind):
        remote.write_panes(stored_panes(random_columns(4, 10, span_s=10)))


def test_a_wrong_password_is_a_matter_of_settings(target: ClickHouseTarget) -> None:
    """It names where, and what to set; the password is in no message."""
    with pytest.raises(ConfigError) as caught:
        ClickHouse.open(replace(target, password="wr0ng"))  # noqa: S106
    assert f"127.0.0.1:{target.port}" in caught.value.message
    assert "clickhouse.password" in caught.value.remedy
    assert "wr0ng" not in str(caught.value) + repr(replace(target, password="wr0ng"))  # noqa: S106


def test_a_database_that_is_not_there_is_named(target: ClickHouseTarget) -> None:
    """Without leave to create it, the reader is told how to."""
    with pytest.raises(ConfigError, match="no_such_db") as caught:
        ClickHouse.open(replace(target, database="no_such_db"), create=False)
    assert "tailbudget migrate" in caught.value.remedy


def test_a_server_that_is_away_may_come_back() -> None:
    """A refused connection is retryable, and names host and port."""
    with pytest.raises(ClickHouseError, match=r"127\.0\.0\.1:1"):
        ClickHouse.open(ClickHouseTarget("http", port=1, connect_timeout_s=1))


def test_a_directory_belongs_to_one_process(clickhouse_path: Path) -> None:
    """A second process says which directory is taken and what to do, and changes nothing."""
    done = subprocess.run(
        [sys.executable, "-c", SECOND_PROCESS, str(clickhouse_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == 2, done.stderr
    assert f"another process uses the embedded ClickHouse in {clickhouse_path}" in done.stdout
    assert "remedy: " in done.stdout


def test_a_process_has_one_directory(clickhouse: ClickHouse, tmp_path: Path) -> None:
    """The engine cannot open a second one beside the first."""
    with pytest.raises(ConfigError, match="this process already has"):
        ClickHouse.open(replace(clickhouse.target, path=tmp_path / "other"))


def test_a_query_that_fails_midway_leaves_nothing_behind(clickhouse: ClickHouse) -> None:
    """The embedded engine puts what it had written before the next answer; nobody sees it."""
    failing = "SELECT number, throwIf(number = 90000) FROM numbers(300000)"
    with pytest.raises(ConfigError):
        clickhouse.query(failing)
    assert clickhouse.query("SELECT 7").rows == ((7,),)
    panes = stored_panes(random_columns(5, 50, span_s=10))
    clickhouse.write_panes(panes)
    for read in ("query", "query_arrow"):
        with pytest.raises(StorageError):
            clickhouse._writer.request("x", methodcaller(read, failing))
        found = clickhouse.read_panes("chat", [panes[0].pane_ns])
        assert_same(panes[0], found[panes[0].pane_ns])


def test_threads_share_a_connection(clickhouse: ClickHouse) -> None:
    """Answers go to who asked, while other queries on the same connection fail midway."""

    def ask(number: int) -> object:
        if number % 3 == 0:
            with pytest.raises(ConfigError):
                clickhouse.query("SELECT number, throwIf(number = 90000) FROM numbers(100000)")
            return number
        return clickhouse.query("SELECT {n:UInt32}", {"n": number}).rows[0][0]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(60))) == list(range(60))


def test_a_server_that_interpolates_is_refused() -> None:
    """Percentiles that would not be ours are refused, with the version that gives them."""
    client = SimpleNamespace(
        server_version="1.2.3", query=lambda _: SimpleNamespace(result_rows=[([1, 2.5, 3],)])
    )
    connection = Connection(client, embedded=False)
    with pytest.raises(StorageError, match=r"1\.2\.3 answers \[1\.0, 2\.5, 3\.0\]"):
        require_nearest_rank(connection)
