"""Answers that are kept until something is written, so that many readers cost one query."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.shown import changes

MOST_KEPT: Final = 64
LOOK_S: Final = 0.5
"""How old what we know of the tables may be: a page hears of a change within twice that."""

Tables = Mapping[str, int]
"""A number for each table that has rows, which every insert makes larger."""


@dataclass(slots=True)
class _Kept:
    tables: Tables
    made_s: float
    task: asyncio.Task[Any]


class Answers:
    """Asks ClickHouse in threads of its own, which the worker's writes never wait for.

    Args:
        store: ClickHouse.
    """

    def __init__(self, store: ClickHouse) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="dashboard")
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="dashboard-look")
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._tables: Tables = {}
        self._looked_s = float("-inf")
        self._lock = asyncio.Lock()

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._looking.shutdown(wait=False, cancel_futures=True)

    async def tables(self) -> Tables:
        """Return what is written, `LOOK_S` old at most.

        Raises:
            ClickHouseError: it does not answer.
        """
        async with self._lock:
            if time.monotonic() - self._looked_s >= LOOK_S:
                loop = asyncio.get_running_loop()
                self._tables = await loop.run_in_executor(
                    self._looking, changes.written, self._store
                )
                self._looked_s = time.monotonic()
            return self._tables

    async def answer(
        self, key: Hashable, make: Callable[[Tables], Any], *, for_s: float = 0.0
    ) -> Any:
        """Return what `make` returns of the tables as they are now, or what it returned before.

        Args:
            key: tells answers apart.
            make: called in a thread.
            for_s: how long an answer is good although something was written.
        """
        tables = await self.tables()
        kept = self._kept.get(key)
        if kept is None or _spent(kept, tables, for_s):
            loop = asyncio.get_running_loop()
            task = asyncio.ensure_future(loop.run_in_executor(self._threads, make, tables))
            kept = self._kept[key] = _Kept(tables, time.monotonic(), task)
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return await asyncio.shield(kept.task)


def _spent(kept: _Kept, tables: Tables, for_s: float) -> bool:
    if kept.task.done() and (kept.task.cancelled() or kept.task.exception() is not None):
        return True
    if not kept.task.done():
        return False
    return kept.tables != tables and time.monotonic() - kept.made_s >= for_s
