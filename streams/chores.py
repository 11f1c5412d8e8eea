"""What a worker does every so often, and how that ends."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final

PAUSE_SHARE: Final = 0.2
"""Share of its interval that lies at least between two calls of what runs every so often."""

Chore = tuple[float, Callable[[], Awaitable[None]]]
"""An interval in seconds, and what is called."""


class Chores:
    """Tasks of a worker.

    Args:
        failed: hears of the error that a task ended with.
    """

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self._failed = failed
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    def start(self, every: Iterable[Chore]) -> None:
        """Call each of them at its interval from now on."""
        self._tasks = [self.spawn(self._repeat(s, call)) for s, call in every]

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something once beside the rest."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    async def pause(self, patience_s: float) -> bool:
        """Let what runs every so often come to its end; return whether it did.

        A flush that is cut off has taken records that it did not send: nothing may follow it.
        """
        self._stopping.set()
        if not self._tasks:
            return False
        _, unfinished = await asyncio.wait(self._tasks, timeout=patience_s)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return not unfinished

    async def _repeat(self, every_s: float, call: Callable[[], Awaitable[None]]) -> None:
        """Call every so often, whatever the calls take, but leave a pause between them."""
        due = time.monotonic() + every_s
        while not self._stopping.is_set():
            pause_s = max(due - time.monotonic(), every_s * PAUSE_SHARE)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            due = time.monotonic() + every_s
            await call()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)
