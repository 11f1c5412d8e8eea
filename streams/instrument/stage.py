"""Timing of stages, as a context manager and as a decorator."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast

from tailbudget.streams.instrument.scope import current_request

P = ParamSpec("P")
T = TypeVar("T")


class stage_timer:  # noqa: N801 - it reads as a function: with stage_timer("retrieve")
    """Times a stage of the current request: `with stage_timer("retrieve")`, or as a decorator.

    What it measures goes to the record's column `<name>_ms`, also when an exception passes.
    Outside of a request it does nothing. It holds no state: one may be shared, nested and used
    by any number of threads and tasks.

    - The same stage again: the times add up. The same stage at the same time, as in
      `asyncio.gather`, or within itself: the time during which any of them ran counts once.
    - A stage within another one: the outer is a container, and its time includes the inner one's.
    - Different stages at the same time: each has its own time; together they may exceed the total.
    - A stage that outlives the request counts until the request's end.

    Tasks and `asyncio.to_thread` know the current request. Other threads do not: run them in
    `contextvars.copy_context()`, or use `Request.stage`.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        request = current_request()
        if request is not None:
            request.spans.open(self.name)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        request = current_request()
        if request is not None:
            request.spans.close(self.name)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Time every call of a function, or every await of a coroutine function.

        Raises:
            TypeError: it is a generator function, of which a call does nothing yet.
        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function.__qualname__} is a generator: use `with stage_timer({self.name!r})`"
                " within it, around what is the stage"
            )
        if inspect.iscoroutinefunction(function):
            return cast("Callable[P, T]", self._around_await(function))
        return self._around_call(function)

    def _around_call(self, function: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            with self:
                return function(*args, **kwargs)

        return timed

    def _around_await(self, function: Callable[P, Any]) -> Callable[P, Any]:
        @functools.wraps(function)
        async def timed(*args: P.args, **kwargs: P.kwargs) -> Any:
            with self:
                return await function(*args, **kwargs)

        return timed
