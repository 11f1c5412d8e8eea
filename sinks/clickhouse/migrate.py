"""Numbered, forward-only changes of the database."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from tailbudget.schemas.errors import ConfigError, StorageError
from tailbudget.sinks.clickhouse.connect import Client
from tailbudget.sinks.clickhouse.errors import classify

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


def migrate(client: Client, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """Apply what is missing, and return it.

    Statements are idempotent, so that a migration that was cut short, or that two workers run at
    once, ends in the same tables.

    Raises:
        ConfigError: the database is newer than the code.
        StorageError: a file that was applied has changed since, or a statement is refused.
        ClickHouseError: the server does not answer.
    """
    wanted = shipped() if migrations is None else migrations
    try:
        client.command(_TABLE)
        missing = pending(client, wanted)
        for migration in missing:
            for statement in migration.statements():
                client.command(statement)
            client.insert(
                "migrations",
                [[migration.number, migration.name, migration.checksum]],
                column_names=["number", "name", "checksum"],
            )
    except Exception as error:
        raise classify(error, "migrating the database") from error
    return list(missing)


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


def require_current(client: Client) -> None:
    """Refuse a database that lacks migrations.

    Raises:
        ConfigError: it lacks some, or is newer than the code.
    """
    try:
        missing = pending(client, shipped())
    except Exception as error:
        raise classify(error, "reading the migrations") from error
    if missing:
        names = ", ".join(f"{migration.number:04}_{migration.name}" for migration in missing)
        raise ConfigError(f"the database lacks {names}", remedy="tailbudget migrate")


def set_ttl(client: Client, ttl_days: int | None) -> None:
    """Let ClickHouse drop panes after so many days, or keep them; data older than that go soon.

    Raises:
        StorageError: the change is refused.
    """
    try:
        present = "TTL pane" in str(client.command("SHOW CREATE TABLE panes"))
        if ttl_days is not None:
            client.command(f"ALTER TABLE panes MODIFY TTL pane + toIntervalDay({int(ttl_days)})")
        elif present:
            client.command("ALTER TABLE panes REMOVE TTL")
    except Exception as error:
        raise classify(error, "setting how long panes are kept") from error


def _has_code(part: str) -> bool:
    lines = (line.strip() for line in part.splitlines())
    return any(line and not line.startswith("--") for line in lines)
