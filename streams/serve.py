"""Running a worker as a process: its directory, its database, its signals, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from typing import Final

import structlog

from tailbudget.schemas.settings import Settings
from tailbudget.sinks.chat import open_channels
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams import logs
from tailbudget.streams.data_directory import DataDirectory, make_directory
from tailbudget.streams.database import open_database
from tailbudget.streams.memory import keep_little
from tailbudget.streams.worker import Worker

log = structlog.get_logger()

GARBAGE_AFTER: Final = 50_000
"""Objects made, less those freed, before Python looks for cycles; a poll makes thousands, none of
them in a cycle, and looking at its default of 700 takes a tenth of the time."""


def run(settings: Settings) -> None:
    """Run a worker until SIGTERM or SIGINT.

    Raises:
        ConfigError: the tables are not migrated, or the data directory is in use.
        BaseException: what made it fail.
    """
    keep_little()
    logs.set_up(settings.log_level)
    make_directory(settings.data_dir)
    with contextlib.ExitStack() as stack:
        if settings.clickhouse.interface == "chdb":
            directory = stack.enter_context(DataDirectory(settings.data_dir))
            if settings.web.enabled:
                directory.announce(host=settings.web.host, port=settings.web.port)
            else:
                directory.announce()
        store = stack.enter_context(contextlib.closing(open_database(settings.clickhouse)))
        store.require_current()
        gc.freeze()
        gc.set_threshold(GARBAGE_AFTER)
        asyncio.run(_run(settings, store))


async def _run(settings: Settings, store: ClickHouse) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(Worker(settings, store, open_channels(settings.chat)), stop)


async def serve(worker: Worker, stop: asyncio.Event) -> None:
    """Run the worker until `stop` is set, and end the process if Faust does not let go of it.

    Raises:
        BaseException: what made it fail.
    """
    try:
        await worker.run_until(stop)
    finally:
        if worker.stuck:
            log.error(
                "the broker does not answer: left without it",
                remedy="check the broker; what was not committed is read again",
            )
            sys.stderr.flush()
            os._exit(1)  # Faust's threads wait for the broker and would keep the process
