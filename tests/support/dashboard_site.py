"""The dashboard on a port of its own, in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Self

import requests

from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.http import Http

PATIENCE_S = 60.0


class Site:
    """Serves for as long as the context lasts, as `tailbudget dashboard` does.

    Attributes:
        url: where it is, without a slash at the end.
    """

    def __init__(self, store: ClickHouse, **settings: Any) -> None:
        given = Settings.model_validate({"web": {"port": 1}, **settings})
        # Port 0 is any free one, which settings do not allow.
        web = given.web.model_copy(update={"port": 0})
        self.url = ""
        self._http = Http(given.model_copy(update={"web": web}), store, lambda: {"healthy": True})
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._http.start(), self._loop).result(PATIENCE_S)
        self.url = f"http://127.0.0.1:{self._http.port}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._http.stop(), self._loop).result(PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)
        self._loop.close()

    def get(self, path: str, **options: Any) -> requests.Response:
        """Return the answer of an address; `params` and the like as of requests."""
        return requests.get(f"{self.url}{path}", timeout=PATIENCE_S, **options)

    def data(self, path: str, **params: Any) -> Any:
        """Return the JSON of an address that answers well."""
        response = self.get(path, params=params)
        assert response.ok, response.text
        return response.json()
