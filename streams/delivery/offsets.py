"""Which offset may be committed: the first that is not finished yet."""

from __future__ import annotations

from collections.abc import Callable

from faust.types import TP


class Offsets:
    """Messages of the alerts topic that somebody is still at.

    Args:
        advance: called with a partition and the offset below which all is finished.
    """

    def __init__(self, advance: Callable[[TP, int], None]) -> None:
        self._advance = advance
        self._open: dict[TP, dict[int, None]] = {}
        self._next: dict[TP, int] = {}

    def __len__(self) -> int:
        return sum(len(waiting) for waiting in self._open.values())

    def begin(self, tp: TP, offset: int) -> None:
        """Note that a message is being handled; offsets of a partition come in order."""
        self._open.setdefault(tp, {})[offset] = None
        self._next[tp] = offset + 1

    def finish(self, tp: TP, offset: int) -> None:
        """Note that a message is finished; one that was forgotten is ignored."""
        waiting = self._open.get(tp)
        if waiting is None or offset not in waiting:
            return
        del waiting[offset]
        self._advance(tp, next(iter(waiting), self._next[tp]))

    def forget(self) -> None:
        """Drop everything: the partitions are no longer ours."""
        self._open.clear()
        self._next.clear()
