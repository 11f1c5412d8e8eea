"""Memory that was freed goes back to the system: glibc keeps it by default.

It gives each thread an arena of its own, and summaries of many cohorts, made in one thread and
freed in another, leave large holes in all of them. Elsewhere than on glibc nothing happens.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

_ARENA_MAX: Final = -8  # M_ARENA_MAX of malloc.h
_ARENAS: Final = 2

TRIM_S: Final = 10.0
"""Interval of giving freed memory back; it takes a few milliseconds."""


def limit_arenas() -> None:
    """Let all threads share two arenas; to be called before there are threads."""
    if (libc := _glibc()) is not None:
        libc.mallopt(_ARENA_MAX, _ARENAS)


async def give_back() -> None:
    """Give freed memory back to the system."""
    if (libc := _glibc()) is not None:
        libc.malloc_trim(0)


def _glibc() -> Any:
    """Return the C library where it is glibc, else None."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "malloc_trim") and hasattr(libc, "mallopt") else None
