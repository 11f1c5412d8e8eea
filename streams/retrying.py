"""The one place where a write is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from tailbudget.schemas.errors import UnavailableError

log = structlog.get_logger()

FIRST_S: Final = 0.25
LONGEST_S: Final = 10.0

T = TypeVar("T")


async def retrying(call: Callable[[], Awaitable[T]]) -> T:
    """Return what `call` returns; try again, ever more slowly, while a service is away.

    It never gives up on an `UnavailableError`: the caller holds what is to be written, and a
    bound on that pauses consumption. Every other error is the caller's.
    """
    wait_s = FIRST_S
    while True:
        try:
            return await call()
        except UnavailableError as error:
            log.warning("will try again", error=error.message, remedy=error.remedy, wait_s=wait_s)
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, LONGEST_S)
