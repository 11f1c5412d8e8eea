"""One record for each HTTP request of an ASGI application, whatever the framework."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from tailbudget.streams.instrument.outcome import CANCELLED, ERROR, Status, status_of
from tailbudget.streams.instrument.scope import Request, request
from tailbudget.streams.instrument.sink import Column, Sink

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LOG: Final = logging.getLogger("tailbudget.instrument")


def route_template(scope: Scope) -> str | None:
    """Return the route as the application declares it, or the name of what answers it.

    FastAPI and Starlette tell their route (`/users/{id}`), Litestar its path template; a framework
    that tells its endpoint only gives that name. None where nothing answers. Never the path
    itself: with an id in it, every request would be a cohort.
    """
    declared = scope.get("path_template") or getattr(scope.get("route"), "path", None)
    if isinstance(declared, str):
        return declared
    name = getattr(scope.get("endpoint"), "__name__", None)
    return name if isinstance(name, str) else None


def raw_path(scope: Scope) -> str | None:
    """Return the path as it was asked for; only where paths hold no ids."""
    path: str | None = scope.get("path")
    return path


class RecordMiddleware:
    """Makes a record of each HTTP request, from its arrival until its response body is sent.

    The status is the response's code; that of the exception, when one ends the request before its
    body is complete; "cancelled", when the client is known to have gone before. What follows the
    response, such as background tasks, is not timed. Exceptions pass. Other scopes, such as
    websockets and lifespan, pass untouched.

    Args:
        app: the application.
        sink: a `RecordProducer`, or a `Collector` in tests.
        route: gives the column `route` from the scope, once the request was routed.
        columns: gives more columns, also `request_id`, `service` or `scheduled_ts`, from the
            scope, at the end. What the application sets on `current_request()` comes first.
    """

    def __init__(
        self,
        app: Application,
        sink: Sink,
        *,
        route: Callable[[Scope], str | None] = route_template,
        columns: Callable[[Scope], Mapping[str, Column]] | None = None,
    ) -> None:
        self._app = app
        self._sink = sink
        self._describe = _Describe(route, columns)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as the application does."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with request(self._sink) as record:
            exchange = _Exchange(record, scope, receive, send, self._describe)
            try:
                await self._app(scope, exchange.receive, exchange.send)
            except BaseException as error:
                exchange.finish(status_of(error))
                raise
            exchange.finish(CANCELLED if exchange.left else ERROR)


class _Describe:
    """Gives a record its columns from the scope."""

    __slots__ = ("_columns", "_complained", "_route")

    def __init__(
        self,
        route: Callable[[Scope], str | None],
        columns: Callable[[Scope], Mapping[str, Column]] | None,
    ) -> None:
        self._route = route
        self._columns = columns
        self._complained = False

    def __call__(self, record: Request, scope: Scope) -> None:
        try:
            columns: dict[str, Column] = {"route": self._route(scope)}
            if self._columns is not None:
                columns.update(self._columns(scope))
            columns.update(record.columns)
            record.columns = columns
        except Exception as error:
            if not self._complained:
                self._complained = True
                LOG.warning("columns of a request are missing, the first time now", exc_info=error)


class _Exchange:
    """One request and its messages, on their way between server and application."""

    __slots__ = ("_code", "_describe", "_receive", "_record", "_scope", "_send", "left")

    def __init__(
        self, record: Request, scope: Scope, receive: Receive, send: Send, describe: _Describe
    ) -> None:
        self._record = record
        self._scope = scope
        self._receive = receive
        self._send = send
        self._describe = describe
        self._code: Status = ERROR
        self.left = False

    def finish(self, status: Status) -> None:
        """End the record, unless it has ended."""
        if not self._record.spans.frozen:
            self._describe(self._record, self._scope)
            self._record.finish(status)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.left = True
        return message

    async def send(self, message: Message) -> None:
        try:
            await self._send(message)
        except OSError:  # so servers say that the client has gone
            self.finish(CANCELLED)
            raise
        kind = message["type"]
        if kind == "http.response.start":
            self._code = message["status"]
        elif kind in _BODIES and not message.get("more_body", False):
            # Some frameworks end the body themselves when they learn that the client has gone.
            self.finish(CANCELLED if self.left else self._code)


_BODIES: Final = frozenset(
    {"http.response.body", "http.response.pathsend", "http.response.zerocopysend"}
)
