"""Numbered, forward-only changes of the database."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from tailbudget.schemas.errors import ConfigError, StorageError
from tailbudget.sinks.clickhouse.connection import Client, Connection

_NAME: Final = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS migrations
(
    number UInt32,
    name String,
    checksum String,
    applied_at DateTime('UTC') DEFAULT now()
)
ENGINE = ReplacingMergeTree
ORDER BY number
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `schemas/ddl`.

    Attributes:
        number: its place in the order, from 1.
        name: what it does, from the file's name.
        sql: its statements, each ended by a semicolon at the end of a line.
    """

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Fingerprint of the statements."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def statements(self) -> list[str]:
        """Return the statements in order."""
        parts = re.split(r";[ \t]*(?:\n|$)", self.sql)
        return [part.strip() for part in parts if _has_code(part)]


def shipped() -> list[Migration]:
    """Return the migrations that come with this version of the code, in order."""
    folder = resources.files("tailbudget.schemas.ddl")
    found = [
        Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if (match := _NAME.match(entry.name))
    ]
    return sorted(found, key=lambda migration: migration.number)


def migrate(
    connection: Connection, migrations: Sequence[Migration] | None = None
) -> list[Migration]:
    """Apply what is missing, and return it.

    Statements are idempotent, so that a migration that was cut short, or that two workers run at
    once, ends in the same tables.

    Raises:
        ConfigError: the database is newer than the code.
        StorageError: a file that was applied has changed since, or a statement is refused.
        ClickHouseError: the server does not answer.
    """
    wanted = shipped() if migrations is None else migrations
    return connection.request("migrating the database", lambda client: _migrate(client, wanted))


def _migrate(client: Client, migrations: Sequence[Migration]) -> list[Migration]:
    client.command(_TABLE)
    missing = pending(client, migrations)
    for migration in missing:
        for statement in migration.statements():
            client.command(statement)
        client.insert(
            "migrations",
            [[migration.number, migration.name, migration.checksum]],
            column_names=["number", "name", "checksum"],
        )
    return missing


def pending(client: Client, migrations: Sequence[Migration]) -> list[Migration]:
    """Return the migrations that the database lacks; it must have the table of migrations.

    Raises:
        ConfigError: the database is newer than the code.
        StorageError: a file that was applied has changed since.
    """
    applied = {
        int(number): (str(name), str(checksum))
        for number, name, checksum in client.query(
            "SELECT number, name, checksum FROM migrations FINAL ORDER BY number"
        ).result_rows
    }
    newest = max((migration.number for migration in migrations), default=0)
    if max(applied, default=0) > newest:
        raise ConfigError(
            f"the database is at migration {max(applied)}, this tailbudget knows {newest}",
            remedy="upgrade tailbudget, or point clickhouse.database at another database",
        )
    for migration in migrations:
        if migration.number in applied and applied[migration.number][1] != migration.checksum:
            raise StorageError(
                f"migration {migration.number} ({migration.name}) was applied with other text",
                remedy="restore the file; a change of the database is a new file",
            )
    return [migration for migration in migrations if migration.number not in applied]


def require_current(connection: Connection) -> None:
    """Refuse a database that lacks migrations.

    Raises:
        ConfigError: it lacks some, or is newer than the code.
    """
    missing = connection.request(
        "reading the migrations", lambda client: pending(client, shipped())
    )
    if missing:
        names = ", ".join(f"{migration.number:04}_{migration.name}" for migration in missing)
        raise ConfigError(f"the database lacks {names}", remedy="tailbudget migrate")


def set_ttl(connection: Connection, ttl_days: int | None) -> None:
    """Let ClickHouse drop panes after so many days, or keep them; data older than that go soon.

    Raises:
        StorageError: the change is refused.
    """
    connection.request("setting how long panes are kept", lambda client: _set_ttl(client, ttl_days))


def _set_ttl(client: Client, ttl_days: int | None) -> None:
    wanted = None if ttl_days is None else f"TTL pane + toIntervalDay({int(ttl_days)})"
    table = str(client.command("SHOW CREATE TABLE panes"))
    if wanted is not None and wanted not in table:
        client.command(f"ALTER TABLE panes MODIFY {wanted}")
    elif wanted is None and "TTL pane" in table:
        client.command("ALTER TABLE panes REMOVE TTL")


def _has_code(part: str) -> bool:
    lines = (line.strip() for line in part.splitlines())
    return any(line and not line.startswith("--") for line in lines)
