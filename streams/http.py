"""The worker's own HTTP port: the dashboard, health, status, and read-only SQL."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from tailbudget.models.evidence_wire import dump
from tailbudget.schemas.errors import ConfigError, TailbudgetError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams import http_silences, metrics
from tailbudget.streams.dashboard.site import Dashboard
from tailbudget.streams.history import Span
from tailbudget.streams.http_answers import json, refusal
from tailbudget.streams.http_hosts import only_hosts_of
from tailbudget.streams.service_report import Past, past_evidence, require_known

MAX_QUERY: Final = 100_000
"""Characters of a query that we take."""

MAX_LINE: Final = 65_536
"""Bytes of an address: names of cohorts are part of it, and may be long."""

LEAVE_S: Final = 2.0
"""Seconds that an answer may take when we stop; the end of a worker waits for it."""


class Http:
    """Serves the dashboard, `/healthz`, `/status`, `/metrics`, `/evidence` and `POST /sql`.

    Attributes:
        port: the port it listens on; valid after `start`.
    """

    def __init__(
        self, settings: Settings, store: ClickHouse, status: Callable[[], Mapping[str, Any]]
    ) -> None:
        self.port = settings.web.port
        self._host = settings.web.host
        self._settings = settings
        self._store = store
        self._status = status
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: the port is taken.
        """
        app = web.Application(client_max_size=MAX_QUERY, middlewares=[only_hosts_of(self._host)])
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/status", self._get_status)
        app.router.add_get("/metrics", metrics.handler(self._status))
        app.router.add_get("/evidence", self._evidence)
        app.router.add_post("/sql", self._sql)
        app.router.add_routes([http_silences.route(self._store)])
        Dashboard(self._settings, self._store).add_to(app)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=LEAVE_S,
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            raise ConfigError(
                f"web.port {self.port} on {self._host} cannot be listened on: {error.strerror}",
                remedy="give each worker on a host its own web.port, or set web.enabled: false",
            ) from error
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _healthz(self, _: web.Request) -> web.Response:
        status = self._status()
        healthy = bool(status["healthy"])
        return web.Response(
            text="ok\n" if healthy else "starting\n", status=200 if healthy else 503
        )

    async def _get_status(self, _: web.Request) -> web.Response:
        return json(self._status())

    async def _evidence(self, request: web.Request) -> web.Response:
        """Answer with the evidence of ?service=…&start_ns=…&end_ns=…, as bytes."""
        asked = request.query
        try:
            span = Span(int(asked["start_ns"]), int(asked["end_ns"]))
            past = Past(asked["service"], span, now_ns=time.time_ns())
        except (KeyError, ValueError):
            return json({"error": "give service, start_ns and end_ns"}, status=400)
        try:
            body = await asyncio.to_thread(self._past, past)
        except TailbudgetError as error:
            return refusal(error, mistake=404)
        return web.Response(body=body, content_type="application/octet-stream")

    def _past(self, past: Past) -> bytes:
        require_known(self._store, past.service)
        return dump(past_evidence(self._settings, self._store, past))

    async def _sql(self, request: web.Request) -> web.Response:
        try:
            query = orjson.loads(await request.read())["query"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return json({"error": "send a JSON object with the key query"}, status=400)
        try:
            result = await asyncio.to_thread(self._store.query, str(query))
        except TailbudgetError as error:
            return refusal(error, trouble=400)
        return json(
            {
                "columns": list(result.columns),
                "types": list(result.types),
                "rows": [list(row) for row in result.rows],
                "truncated": result.truncated,
            }
        )
