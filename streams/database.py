"""The database that the settings name."""

from __future__ import annotations

from tailbudget.schemas.connections import ClickHouseSettings
from tailbudget.sinks.clickhouse import ClickHouse, ClickHouseTarget


def clickhouse_target(clickhouse: ClickHouseSettings) -> ClickHouseTarget:
    """Return where the settings say that ClickHouse is."""
    return ClickHouseTarget(
        interface=clickhouse.interface,
        host=clickhouse.host,
        port=clickhouse.port,
        secure=clickhouse.secure,
        username=clickhouse.username,
        password=clickhouse.password.get_secret_value(),
        database=clickhouse.database,
        path=clickhouse.path,
    )


def open_database(clickhouse: ClickHouseSettings, *, create: bool = False) -> ClickHouse:
    """Connect to ClickHouse, without touching its tables.

    Args:
        clickhouse: where and how.
        create: create the database when it does not exist.

    Raises:
        ClickHouseError: it does not answer.
        ConfigError: it refuses us, the database is missing, or the directory is in use.
    """
    return ClickHouse.open(clickhouse_target(clickhouse), create=create)
