"""A connection whose failed requests leave nothing behind."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tailbudget.sinks.clickhouse.errors import classify

Client = Any
"""`clickhouse_connect.driver.client.Client`, which ships no types."""

T = TypeVar("T")


class Connection:
    """A driver's client, safe to share between threads.

    What the embedded engine had written of an answer before the query failed is put before the
    next answer on the same handle. So one request at a time has the handle, and after a failure
    the rest is read away before the next.
    """

    def __init__(self, client: Client, *, embedded: bool) -> None:
        self._client = client
        self._embedded = embedded
        self._lock = threading.RLock() if embedded else contextlib.nullcontext()

    @property
    def version(self) -> str:
        """Version of ClickHouse."""
        return str(self._client.server_version)

    def request(self, doing: str, call: Callable[[Client], T]) -> T:
        """Return what `call` returns, with the driver's errors as ours.

        Args:
            doing: what the request is for, for messages.
            call: makes one or more requests.
        """
        try:
            return self.attempt(call)
        except Exception as error:
            raise classify(error, doing) from error

    def attempt(self, call: Callable[[Client], T]) -> T:
        """Return what `call` returns; the driver's errors pass."""
        with self._lock:
            try:
                return call(self._client)
            except BaseException:
                if self._embedded:
                    self._read_away()
                raise

    def close(self) -> None:
        """Let go of the server, or of the directory; a request that runs there ends first."""
        with self._lock:
            self._client.close()

    def _read_away(self) -> None:
        # It fails itself where the rest is no table.
        with contextlib.suppress(Exception):
            self._client.command("SELECT 1")
