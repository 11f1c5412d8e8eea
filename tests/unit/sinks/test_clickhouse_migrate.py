"""Migrations: once, in order, forward only."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tailbudget.schemas.errors import ConfigError, StorageError
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.migrate import Migration, migrate, require_current, shipped

FIRST = Migration(1, "first", "CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = Memory;\n")
SECOND = Migration(
    2,
    "second",
    "-- Two statements; this comment holds one semicolon.\n"
    "CREATE TABLE IF NOT EXISTS b (x UInt8 COMMENT 'a; b') ENGINE = Memory;\n"
    "CREATE TABLE IF NOT EXISTS c (x UInt8) ENGINE = Memory;\n",
)


def drop(client: Any, name: str) -> None:
    """Drop a table or view."""
    client.command(f"DROP TABLE IF EXISTS `{name}`")


@pytest.fixture
def fresh(clickhouse: ClickHouse) -> ClickHouse:
    """A database without tables."""
    for (name,) in clickhouse.query("SHOW TABLES").rows:
        clickhouse._writer.request("x", partial(drop, name=name))
    return clickhouse


def test_the_shipped_files_are_numbered_without_gaps() -> None:
    """Each number once, from 1."""
    assert [migration.number for migration in shipped()] == list(range(1, len(shipped()) + 1))


def test_migrating_twice_applies_once(fresh: ClickHouse) -> None:
    """What is missing is applied and named; then nothing is missing."""
    assert fresh.migrate() == [f"{m.number:04}_{m.name}" for m in shipped()]
    assert fresh.migrate() == []
    fresh.require_current()
    rows = fresh.query("SELECT number, checksum FROM migrations FINAL ORDER BY number").rows
    assert rows == tuple((m.number, m.checksum) for m in shipped())


def test_statements_end_at_the_end_of_a_line() -> None:
    """A semicolon inside a comment or a text ends nothing."""
    assert len(SECOND.statements()) == 2
    assert all(len(migration.statements()) > 0 for migration in shipped())


def test_a_later_migration_is_applied_alone(fresh: ClickHouse) -> None:
    """A database that is behind gets only what it lacks."""
    connection = fresh._writer
    assert migrate(connection, [FIRST]) == [FIRST]
    assert migrate(connection, [FIRST, SECOND]) == [SECOND]
    names = {name for (name,) in fresh.query("SHOW TABLES").rows}
    assert {"a", "b", "c"} <= names


def test_a_changed_file_is_refused(fresh: ClickHouse) -> None:
    """History is not edited: the database may differ from what the file now says."""
    connection = fresh._writer
    migrate(connection, [FIRST])
    with pytest.raises(StorageError, match="first") as caught:
        migrate(connection, [replace(FIRST, sql=FIRST.sql.replace("UInt8", "UInt16"))])
    assert "new file" in caught.value.remedy


def test_a_newer_database_is_refused(fresh: ClickHouse) -> None:
    """Old code does not write into tables that it does not know."""
    connection = fresh._writer
    migrate(connection, [FIRST, SECOND])
    with pytest.raises(ConfigError, match="at migration 2, this tailbudget knows 1") as caught:
        migrate(connection, [FIRST])
    assert "upgrade" in caught.value.remedy


def test_a_migration_that_was_cut_short_is_finished(fresh: ClickHouse) -> None:
    """Half of the statements ran and nothing was recorded: the next run does the rest."""
    connection = fresh._writer
    broken = replace(SECOND, sql=SECOND.sql + "CREATE TABLE broken (;\n")
    with pytest.raises(StorageError):
        migrate(connection, [FIRST, broken])
    assert migrate(connection, [FIRST, SECOND]) == [SECOND]


def test_a_database_without_tables_is_not_current(fresh: ClickHouse) -> None:
    """The worker says which command to run, before it reads anything from Kafka."""
    with pytest.raises(ConfigError) as caught:
        require_current(fresh._writer)
    assert "tailbudget migrate" in caught.value.remedy


def test_the_age_limit_comes_and_goes_with_the_setting(clickhouse: ClickHouse) -> None:
    """Setting days adds a TTL to the panes, another number changes it, none removes it."""

    def table() -> str:
        return str(clickhouse.query("SHOW CREATE TABLE panes").rows[0][0])

    assert "TTL pane" not in table()
    clickhouse.migrate(ttl_days=30)
    assert "TTL pane + toIntervalDay(30)" in table()
    clickhouse.migrate(ttl_days=90)
    assert "TTL pane + toIntervalDay(90)" in table()
    clickhouse.migrate()
    assert "TTL pane" not in table()
