"""The way of a silence through the worker, which alone may write to its embedded engine."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from aiohttp import web

from tailbudget.schemas.errors import ConfigError, TailbudgetError
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.http_answers import json, refusal
from tailbudget.streams.silencing import PATH, read


def route(store: ClickHouse) -> web.RouteDef:
    """Return the route that keeps a silence; one that does not come as JSON is refused."""

    async def keep(request: web.Request) -> web.Response:
        try:
            silence = read(await _json(request))
            await asyncio.to_thread(store.write_silence, silence)
        except TailbudgetError as error:
            return refusal(error)
        return json({"id": silence.id})

    return web.post(PATH, keep)


async def _json(request: web.Request) -> Any:
    try:
        if request.content_type == "application/json":
            return orjson.loads(await request.read())
    except orjson.JSONDecodeError:
        pass
    raise ConfigError("this is not JSON", remedy="send Content-Type: application/json, and JSON")
