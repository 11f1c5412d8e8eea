"""Request ids that are unique over threads, processes and machines, and cheap."""

from __future__ import annotations

import os
from itertools import count


class _Ids:
    """64 random bits for the process, and a number: no system call for each request."""

    __slots__ = ("_numbers", "_process")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self._process = os.urandom(8).hex()
        self._numbers = count(1)

    def next(self) -> str:
        return f"{self._process}-{next(self._numbers):x}"


_IDS = _Ids()
os.register_at_fork(after_in_child=_IDS.renew)

next_id = _IDS.next
"""Return a request id that no other process has given, nor this one before."""
