"""Memory that was freed goes back to the system: allocators keep it by default.

glibc gives each thread an arena of its own, and summaries of many cohorts, made in one thread and
freed in another, leave large holes in all of them. Arrow's own allocator keeps what it had.
Elsewhere than on glibc nothing is set but Arrow's.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Final

import pyarrow as pa

_ARENAS: Final = 2
_OWN_PAGES: Final = 1024 * 1024
"""Arrays of so many bytes have pages of their own, given back when they are freed. glibc begins
with less, and takes larger ones from its arenas once it has seen one freed; less costs time."""

_SETTINGS: Final = {-8: _ARENAS, -3: _OWN_PAGES}  # M_ARENA_MAX and M_MMAP_THRESHOLD of malloc.h

TRIM_S: Final = 10.0
"""Interval of giving freed memory back; it takes a few milliseconds."""


def keep_little() -> None:
    """Let allocators give memory back; to be called before there are threads."""
    pa.set_memory_pool(pa.system_memory_pool())
    if (libc := _glibc()) is not None:
        for setting, value in _SETTINGS.items():
            libc.mallopt(setting, value)


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
