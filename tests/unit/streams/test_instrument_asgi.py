"""The middleware, driven by plain ASGI calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tailbudget.streams.instrument import (
    Collector,
    Column,
    RecordMiddleware,
    current_request,
    raw_path,
    stage_timer,
)

START = {"type": "http.response.start", "status": 200, "headers": []}
END = {"type": "http.response.body", "body": b"x"}


@dataclass(frozen=True)
class Route:
    """As FastAPI and Starlette put it into the scope."""

    path: str


def call(
    app: Any,
    collector: Collector,
    *,
    scope: dict[str, Any] | None = None,
    received: Iterable[str] = ("http.request",),
    **options: Any,
) -> list[Any]:
    """Send one request through the middleware; return what the application sent."""
    sent: list[Any] = []
    incoming = iter(received)

    async def receive() -> dict[str, Any]:
        return {"type": next(incoming)}

    async def send(message: Any) -> None:
        sent.append(message)

    whole = {"type": "http", "path": "/users/17", **(scope or {})}
    asyncio.run(RecordMiddleware(app, collector, **options)(whole, receive, send))
    return sent


async def answer(_scope: Any, _receive: Any, send: Any) -> None:
    """Answer at once."""
    await send(START)
    await send(END)


@pytest.mark.parametrize("code", [200, 204, 302, 404, 429, 500, 503])
def test_the_status_is_the_code_of_the_response(code: int) -> None:
    """The messages pass unchanged, and the record has the code."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({**START, "status": code})
        await send(END)

    collector = Collector()
    assert call(app, collector) == [{**START, "status": code}, END]
    assert [record["status"] for record in collector.records()] == [code]


ROUTES: list[tuple[dict[str, Any], str | None]] = [
    ({"route": Route("/users/{id}"), "endpoint": answer}, "/users/{id}"),
    ({"path_template": "/users/{id:int}"}, "/users/{id:int}"),
    ({"endpoint": answer}, "answer"),
    ({"endpoint": Route("/x"), "route": "/users/17"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("found", "route"), ROUTES)
def test_the_route_is_a_template(found: dict[str, Any], route: str | None) -> None:
    """It comes from what the framework found while it answered, never from the path."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope.update(found)
        await answer(scope, receive, send)

    collector = Collector()
    call(app, collector)
    assert collector.records()[0].get("route") == route


def test_the_path_is_there_when_asked_for() -> None:
    """Services whose paths hold no ids may choose it."""
    collector = Collector()
    call(answer, collector, route=raw_path)
    assert collector.records()[0]["route"] == "/users/17"


def test_it_times_to_the_end_of_the_body_and_no_further() -> None:
    """Chunks that come late are within the total; background work after the last one is not."""
    ends: dict[str, float] = {}

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        one = current_request()
        assert one is not None
        await send(START)
        for _ in range(3):
            with stage_timer("decode"):
                await asyncio.sleep(0.004)
            await send({**END, "more_body": True})
        await send({"type": "http.response.body"})
        ends["total_ms"] = one.spans.total_ms
        with stage_timer("background"):
            await asyncio.sleep(0.01)
        one.set(region="late")

    collector = Collector()
    assert len(call(app, collector)) == 5
    (record,) = collector.records()
    assert 12 <= record["decode_ms"] <= record["total_ms"] == ends["total_ms"]
    assert {"background_ms", "region"}.isdisjoint(record)


def test_files_sent_by_the_server_end_the_response_too() -> None:
    """`http.response.pathsend` is a whole body."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(START)
        await send({"type": "http.response.pathsend", "path": "/f"})

    collector = Collector()
    call(app, collector)
    assert collector.records()[0]["status"] == 200


async def raises(_scope: Any, _receive: Any, _send: Any) -> None:
    """Fail before the response."""
    raise LookupError("mine")


async def breaks_off(_scope: Any, _receive: Any, send: Any) -> None:
    """Fail within the response."""
    await send(START)
    await send({**END, "more_body": True})
    raise TimeoutError("mine")


async def loses_its_client(_scope: Any, receive: Any, send: Any) -> None:
    """Return without an end, for the client has gone, as streaming responses do."""
    await send(START)
    while (await receive())["type"] != "http.disconnect":
        await send({**END, "more_body": True})


async def ends_for_its_client(_scope: Any, receive: Any, send: Any) -> None:
    """End the body though the client has gone, as some middleware does."""
    await send(START)
    while (await receive())["type"] != "http.disconnect":
        pass
    await send(END)


async def forgets_the_end(_scope: Any, _receive: Any, send: Any) -> None:
    """Return without an end for no reason."""
    await send(START)


@pytest.mark.parametrize(
    ("app", "error", "status"),
    [
        (raises, LookupError, "error"),
        (breaks_off, TimeoutError, "timeout"),
        (loses_its_client, None, "cancelled"),
        (ends_for_its_client, None, "cancelled"),
        (forgets_the_end, None, "error"),
    ],
)
def test_incomplete_responses_are_failures(
    app: Any, error: type[Exception] | None, status: str
) -> None:
    """The code of a response that broke off is no success; exceptions are raised again."""
    collector = Collector()
    received = ("http.request", "http.disconnect")
    if error is None:
        call(app, collector, received=received)
    else:
        with pytest.raises(error, match="mine"):
            call(app, collector, received=received)
    assert [record["status"] for record in collector.records()] == [status]


def test_a_server_that_cannot_send_has_lost_its_client() -> None:
    """An OSError of the server's `send` is a cancellation, and passes."""
    collector = Collector()

    async def send(_message: Any) -> None:
        raise ConnectionResetError

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    middleware = RecordMiddleware(answer, collector)
    with pytest.raises(ConnectionResetError):
        asyncio.run(middleware({"type": "http", "path": "/"}, receive, send))
    assert [record["status"] for record in collector.records()] == ["cancelled"]


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
def test_other_scopes_pass_untouched(kind: str) -> None:
    """They make no record, and get the server's own channels."""
    seen: list[Any] = []

    async def app(*arguments: Any) -> None:
        seen.extend(arguments)

    async def receive() -> dict[str, Any]:
        return {}

    async def send(_message: Any) -> None:
        pass

    collector = Collector()
    scope = {"type": kind}
    asyncio.run(RecordMiddleware(app, collector)(scope, receive, send))
    assert seen == [scope, receive, send]
    assert collector.lines == []


def test_the_application_knows_better_than_the_hook_and_the_hook_than_the_route() -> None:
    """Columns of the application come first, then those from the scope; its status wins too."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        one = current_request()
        assert one is not None
        one.set(region="eu", batch_size=2)
        one.status = "rejected"
        await answer(scope, receive, send)

    def columns(scope: Any) -> Mapping[str, Column]:
        return {"route": "fixed", "region": "us", "request_id": f"id{scope['path']}"}

    collector = Collector()
    call(app, collector, columns=columns)
    (record,) = collector.records()
    wanted = {
        "request_id": "id/users/17",
        "status": "rejected",
        "route": "fixed",
        "region": "eu",
        "batch_size": 2,
    }
    assert {column: record[column] for column in wanted} == wanted


def test_a_hook_that_fails_costs_only_its_columns(caplog: pytest.LogCaptureFixture) -> None:
    """The response and the record are there; the failure is logged once."""

    def broken(_scope: Any) -> Mapping[str, Column]:
        raise ZeroDivisionError

    collector = Collector()
    with caplog.at_level(logging.WARNING, "tailbudget.instrument"):
        assert call(answer, collector, columns=broken) == [START, END]
    assert [record["status"] for record in collector.records()] == [200]
    (logged,) = caplog.records
    assert "columns of a request are missing" in logged.message
