"""Connections: one code path for a server and for the embedded engine."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import clickhouse_connect
from clickhouse_connect.driver.exceptions import ProgrammingError

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.errors import ConfigError, StorageError, TailbudgetError
from tailbudget.sinks.clickhouse.connection import Client, Connection
from tailbudget.sinks.clickhouse.errors import classify

SESSION: Final = {
    # `now()` in a view's arguments is read as UTC, wherever the server stands.
    "session_timezone": "UTC",
    # A pane never spans partitions, so FINAL needs not merge across them.
    "do_not_merge_across_partitions_select_final": "1",
}
WRITING: Final = SESSION | {
    # A write is durable, as one block, when it returns.
    "async_insert": "0",
}
_PROBE: Final = "SELECT quantilesExactWeightedArray(0.5, 0.95, 0.99)([1, 2, 3], [5, 4, 1])"


def connect(
    target: ClickHouseTarget, settings: Mapping[str, str] = WRITING, *, create: bool = False
) -> Connection:
    """Return a connection whose current database is the target's.

    Args:
        target: where to.
        settings: ClickHouse settings of the session, set in order.
        create: create the database when it does not exist.

    Raises:
        ClickHouseError: the server does not answer.
        ConfigError: wrong credentials, a missing database, or a directory in use.
    """
    doing = f"connecting to {target.place}"
    client: Client = None
    try:
        client = clickhouse_connect.get_client(**_arguments(target))
        if create:
            client.command(f"CREATE DATABASE IF NOT EXISTS `{target.database}`")
        client.database = target.database
        client.command("SELECT 1")
        for name, value in settings.items():
            client.set_client_setting(name, value)
    except Exception as error:
        if client is not None:
            client.close()
        raise _refusal(error, target, doing) from error
    return Connection(client, embedded=target.interface == "chdb")


def require_nearest_rank(connection: Connection) -> None:
    """Refuse a server whose weighted quantiles interpolate: its percentiles would not be ours.

    Raises:
        StorageError: the probe's answer is not that of the nearest rank.
    """
    rows = connection.request("a probe", lambda client: client.query(_PROBE).result_rows)
    answer = [float(value) for value in rows[0][0]]
    if answer != [1.0, 3.0, 3.0]:
        raise StorageError(
            f"quantilesExactWeightedArray of ClickHouse {connection.version} answers {answer}"
            " where the nearest rank is [1, 3, 3]",
            remedy="use a ClickHouse version whose quantileExactWeighted does not interpolate",
        )


def _arguments(target: ClickHouseTarget) -> dict[str, Any]:
    if target.interface == "chdb":
        target.path.mkdir(parents=True, exist_ok=True)
        return {"interface": "chdb", "path": str(target.path)}
    return {
        "interface": "https" if target.secure else "http",
        "host": target.host,
        "port": target.port,
        "username": target.username,
        "password": target.password,
        "connect_timeout": target.connect_timeout_s,
        "send_receive_timeout": target.request_timeout_s,
        # Sessions refuse concurrent requests; we need none.
        "autogenerate_session_id": False,
        "query_retries": 0,
    }


def _refusal(error: Exception, target: ClickHouseTarget, doing: str) -> TailbudgetError:
    if target.interface != "chdb" or not isinstance(error, ProgrammingError):
        return classify(error, doing)
    if "different path" in str(error):
        return ConfigError(
            f"this process already has an embedded ClickHouse elsewhere than {target.path}",
            remedy="one process opens one directory: close the other first",
        )
    if _in_use(target.path):
        return ConfigError(
            f"another process uses the embedded ClickHouse in {target.path}",
            remedy="stop it, or query it over its own port, or choose another directory with"
            " clickhouse.path",
        )
    return ConfigError(
        f"{doing}: the engine does not start",
        remedy="see its message above; the directory must be writable and on a disk with space",
    )


def _in_use(path: Path) -> bool:
    """The engine tells the cause on its stderr only; its lock on this file tells it to us."""
    try:
        with (path / "status").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
