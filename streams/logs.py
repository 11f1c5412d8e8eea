"""How a worker logs: one line an event on standard error, with what, where and the remedy."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import time
from collections.abc import Callable
from typing import Final, TextIO, cast

import structlog

AGAIN_S: Final = 10.0
"""Seconds after which a library may repeat itself."""

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def set_up(level: str) -> None:
    """Log what is at least as severe as `level`; of the libraries only what went wrong.

    Faust and aiokafka tell of every rebalance and retry; that is ours to say.
    """
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Undisturbed(sys.stderr))),
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
    )
    libraries = logging.ERROR if level != "debug" else logging.DEBUG
    logging.basicConfig(stream=sys.stderr, level=libraries, format=_FORMAT, force=True)
    for handler in logging.getLogger().handlers:
        handler.addFilter(Sparing())


class Sparing(logging.Filter):
    """Lets each message of a library through once in `AGAIN_S`.

    Without a broker there are hundreds a second of the same few.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether this message was not told lately."""
        key = (record.name, str(record.msg))
        now = self._clock()
        if now - self._told.get(key, -AGAIN_S) < AGAIN_S:
            return False
        self._told[key] = now
        return True


class _Undisturbed(io.TextIOBase):
    """Writes on, and loses a line where it cannot: no worker ends by a full disk or a closed log.

    A closed stream raises a ValueError.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


_FORMAT = "%(asctime)s [%(levelname)s] %(name)s: %(message)s"
