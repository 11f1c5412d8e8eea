"""The database that the settings name."""

from __future__ import annotations

import re
from typing import Final

from tailbudget.schemas.connections import ClickHouseSettings
from tailbudget.schemas.errors import ClickHouseError, ConfigError
from tailbudget.sinks.clickhouse import ClickHouse, ClickHouseTarget

_CAUSE: Final = re.compile(r"(?<=\] )[A-Z][^\"')]+|timed out|(?<=HTTP )\d{3}")
"""The part of the driver's text that a person needs."""

_REMEDY: Final = "start it, or set clickhouse.host and clickhouse.port to where it is"


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
    target = clickhouse_target(clickhouse)
    try:
        return ClickHouse.open(target, create=create)
    except ClickHouseError as error:
        cause = _CAUSE.search(error.message)
        raise ClickHouseError(
            f"{target.place} does not answer: {cause[0] if cause else error.message}",
            remedy=error.remedy or _REMEDY,
        ) from error


def open_existing(clickhouse: ClickHouseSettings) -> ClickHouse:
    """Connect to ClickHouse; an embedded engine that is not there is not made.

    Raises:
        ClickHouseError: it does not answer.
        ConfigError: it refuses us, the database or the directory is missing or in use.
    """
    existing_target(clickhouse)
    return open_database(clickhouse)


def existing_target(clickhouse: ClickHouseSettings) -> ClickHouseTarget:
    """Return where ClickHouse is.

    Raises:
        ConfigError: it is an embedded engine that is not there.
    """
    if clickhouse.interface == "chdb" and not clickhouse.path.exists():
        raise ConfigError(
            f"there is no embedded ClickHouse in {clickhouse.path}",
            remedy="give the --data of `tailbudget up`, or set data_dir or clickhouse.path",
        )
    return clickhouse_target(clickhouse)
