"""The routes of the dashboard."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import web

from tailbudget.schemas.errors import TailbudgetError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.dashboard import pages
from tailbudget.streams.dashboard.alerts import alerts
from tailbudget.streams.dashboard.analysis import analysis
from tailbudget.streams.dashboard.answers import Answers, Tables
from tailbudget.streams.dashboard.asked import LASTS_S, USUAL, asked
from tailbudget.streams.dashboard.events import Events
from tailbudget.streams.dashboard.overview import overview
from tailbudget.streams.dashboard.queries import READY
from tailbudget.streams.dashboard.series import series
from tailbudget.streams.http_answers import json, refusal

ANALYSE_S: Final = 5.0
"""A report is drawn no more often while records come: it takes a good part of a second."""

_LATEST_AUDITS: Final = """
SELECT window_s, payload FROM audits FINAL WHERE service = {service:String}
ORDER BY window_s, end DESC LIMIT 1 BY window_s
"""


class Dashboard:
    """Serves the pages, their data, and `/services/NAME` as JSON to programs.

    Args:
        settings: what services promise.
        store: ClickHouse.
    """

    def __init__(self, settings: Settings, store: ClickHouse) -> None:
        self._settings = settings
        self._store = store
        self._answers = Answers(store)
        self._events = Events(self._answers)
        self._templates = pages.environment()

    def add_to(self, app: web.Application) -> None:
        """Add the routes, and the headers that guard every answer of the application."""
        get = app.router.add_get
        get("/", partial(self._page, "overview"))
        get("/services/{service}", self._service)
        get("/alerts", partial(self._page, "alerts"))
        get("/sql", partial(self._page, "sql"))
        get("/events", self._events.serve)
        get("/data/services", self._overview)
        get("/data/series", self._series)
        get("/data/analysis", self._analysis)
        get("/data/alerts", self._alerts)
        app.router.add_static("/static", pages.STATIC)
        app.on_response_prepare.append(pages.guard)
        app.on_shutdown.append(self._close)

    async def _close(self, _: web.Application) -> None:
        self._events.close()
        self._answers.close()

    async def _page(self, name: str, _: web.Request) -> web.Response:
        return self._rendered(name)

    def _rendered(self, name: str, **values: Any) -> web.Response:
        page = self._templates.get_template(f"{name}.html.jinja")
        return pages.html(
            page.render(page=name, lasts=tuple(LASTS_S), usual=USUAL, ready=READY, **values)
        )

    async def _service(self, request: web.Request) -> web.Response:
        name = request.match_info["service"]
        if pages.wants_html(request):
            return self._rendered("service", service=name)
        return await self._answer(("audits", name), lambda _: self._latest_audits(name))

    def _latest_audits(self, service: str) -> dict[str, Any]:
        rows = self._store.query(_LATEST_AUDITS, {"service": service}).rows
        return {str(row[0]): orjson.loads(row[1]) for row in rows}

    async def _overview(self, _: web.Request) -> web.Response:
        return await self._answer("overview", partial(overview, self._settings, self._store))

    async def _alerts(self, _: web.Request) -> web.Response:
        return await self._answer("alerts", partial(alerts, self._store))

    async def _series(self, request: web.Request) -> web.Response:
        def make(tables: Tables) -> Mapping[str, Any]:
            return series(self._settings, self._store, tables, asked(request.query))

        return await self._answer(("series", request.query_string), make)

    async def _analysis(self, request: web.Request) -> web.Response:
        def make(_: Tables) -> Mapping[str, Any]:
            look = asked(request.query)
            return analysis(self._settings, self._store, look, now_ns=time.time_ns())

        return await self._answer(("analysis", request.query_string), make, for_s=ANALYSE_S)

    async def _answer(
        self,
        key: Hashable,
        make: Callable[[Tables], Mapping[str, Any]],
        *,
        for_s: float = 0.0,
    ) -> web.Response:
        try:
            made = await self._answers.answer(key, make, for_s=for_s)
        except TailbudgetError as error:
            return refusal(error)
        return json(made, status=200 if made else 404)
