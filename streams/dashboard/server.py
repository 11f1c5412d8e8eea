"""`tailbudget dashboard`: the pages alone, against ClickHouse."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from rich.console import Console

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams import logs
from tailbudget.streams.data_directory import running_worker
from tailbudget.streams.database import open_existing
from tailbudget.streams.http import Http


def run(settings: Settings) -> None:
    """Serve the dashboard until SIGINT or SIGTERM.

    Raises:
        ClickHouseError: ClickHouse does not answer.
        ConfigError: a worker owns the embedded engine, the tables are not up to date, or the
            port is taken.
    """
    logs.set_up("warning")
    _require_free(settings)
    with contextlib.closing(open_existing(settings.clickhouse)) as store:
        store.require_current()
        asyncio.run(serve(settings, store))


async def serve(settings: Settings, store: ClickHouse) -> None:
    """Serve until a signal.

    Raises:
        ConfigError: the port is taken.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    http = Http(settings, store, lambda: {"healthy": True, "worker": False})
    await http.start()
    host = settings.web.host
    shown = f"[{host}]" if ":" in host else host
    Console(highlight=False).print(
        f"dashboard  http://{shown}:{http.port}/\nCtrl-C ends it.", soft_wrap=True, markup=False
    )
    await stop.wait()
    await http.stop()


def _require_free(settings: Settings) -> None:
    """Refuse an embedded engine that a worker owns: that worker serves the dashboard itself."""
    worker = running_worker(settings.data_dir) if settings.clickhouse.interface == "chdb" else None
    if worker is None:
        return
    place = f"http://{worker['host']}:{worker['port']}/" if "port" in worker else ""
    raise ConfigError(
        f"process {worker.get('pid', '?')} owns the embedded ClickHouse in {settings.data_dir}",
        remedy=f"open {place}, where it serves the dashboard"
        if place
        else "set web.enabled for it, and open its port",
    )
