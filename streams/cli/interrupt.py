"""Ctrl-C and SIGTERM ask long work to end; a second one ends it at once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import Event
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def until_interrupted() -> Callable[[float], bool]:
    """Return a wait that takes seconds, or less, and is true once a signal has come.

    Call it from the main thread.
    """
    asked = Event()

    def ask(_: int, __: FrameType | None) -> None:
        asked.set()
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    for number in _SIGNALS:
        signal.signal(number, ask)
    return asked.wait
