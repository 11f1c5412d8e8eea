"""Telling open pages that something was written: server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Final

import orjson
from aiohttp import web

from tailbudget.schemas.errors import TailbudgetError
from tailbudget.streams.dashboard.answers import LOOK_S, Answers

BEAT_S: Final = 5.0
"""A page that hears nothing for longer says that it is cut off."""

MOST_OPEN: Final = 100
"""Pages that are told at a time; each holds a connection."""


class Events:
    """Serves `/events` until `close`.

    Args:
        answers: knows what was written.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._closing = asyncio.Event()
        self._open = 0

    def close(self) -> None:
        """End every stream."""
        self._closing.set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Tell one page, until it goes."""
        if self._open >= MOST_OPEN:
            return web.Response(status=503, text="too many pages are open\n")
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        )
        await response.prepare(request)
        self._open += 1
        try:
            await self._tell(response)
        except ConnectionError:
            pass  # the page has gone
        finally:
            self._open -= 1
        return response

    async def _tell(self, response: web.StreamResponse) -> None:
        told: Any = None
        told_s = float("-inf")
        while not self._closing.is_set():
            kind, said = await self._newest()
            now_s = time.monotonic()
            if said != told or now_s - told_s >= BEAT_S:
                name = kind if said != told or kind == "trouble" else "beat"
                data = orjson.dumps({"at_ms": time.time_ns() // 1_000_000, **said})
                await response.write(b"event: %s\ndata: %s\n\n" % (name.encode(), data))
                told, told_s = said, now_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), LOOK_S)

    async def _newest(self) -> tuple[str, dict[str, Any]]:
        try:
            return "written", {"tables": dict(await self._answers.tables())}
        except TailbudgetError as error:
            return "trouble", {"error": error.message, "remedy": error.remedy}
