"""Answers from ClickHouse, again and again: from a server, a running worker, or a directory."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from tailbudget.schemas.errors import UnavailableError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.data_directory import running_worker
from tailbudget.streams.database import clickhouse_target, open_existing
from tailbudget.streams.sql import ask_worker

Rows = list[dict[str, Any]]

PATIENCE_S: Final = 10.0
"""For one answer of a worker: a screen that is older says so, and the next try may do better."""


class Asking:
    """Asks where the settings say that ClickHouse is; one question at a time.

    The embedded engine is opened only for as long as an answer takes, so that a worker can start
    meanwhile. While none runs nothing changes, and what was answered before is answered again.

    Attributes:
        place: where the last answer came from, for a person.
    """

    def __init__(self, settings: Settings) -> None:
        self.place = clickhouse_target(settings.clickhouse).place
        self._settings = settings
        self._store: ClickHouse | None = None
        self._kept: dict[str, Rows] = {}

    def rows(self, query: str) -> Rows:
        """Return the rows of an answer, by column. Blocks until it is there.

        Raises:
            ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
            ConfigError: it refuses us, or there is none.
        """
        if self._settings.clickhouse.interface == "chdb":
            return self._embedded(query)
        if self._store is not None:
            with contextlib.suppress(UnavailableError):
                return self._store.query(query).records()
            self.close()
        # To connect anew says in few words what is wrong, where something is.
        self._store = open_existing(self._settings.clickhouse)
        return self._store.query(query).records()

    def close(self) -> None:
        """Let go of the server; the next question connects again."""
        store, self._store = self._store, None
        if store is not None:
            store.close()

    def _embedded(self, query: str) -> Rows:
        worker = running_worker(self._settings.data_dir)
        if worker is not None:
            self._kept.clear()
            return self._of_worker(worker, query)
        target = clickhouse_target(self._settings.clickhouse)
        self.place = f"{target.place}, which no worker writes to now"
        if query not in self._kept:
            with closing(open_existing(self._settings.clickhouse)) as store:
                self._kept[query] = store.query(query).records()
        return self._kept[query]

    def _of_worker(self, worker: Mapping[str, Any], query: str) -> Rows:
        answer = ask_worker(worker, query, patience_s=PATIENCE_S)
        self.place = f"the worker at {worker['host']}:{worker['port']}"
        return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
