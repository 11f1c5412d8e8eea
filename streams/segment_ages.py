"""How long the oldest message of each source has waited for its segment to be committed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from faust.types import TP

_OPEN: Final = 1
_SENT: Final = 0


class SegmentAges:
    """Remembers when the open segment of each source began, and the one that is being sent.

    Times are seconds of a growing clock.
    """

    def __init__(self) -> None:
        self._began_s: dict[tuple[int, TP], float] = {}

    def take(self, tp: TP, now_s: float) -> None:
        """Note that messages of a source were read."""
        self._began_s.setdefault((_OPEN, tp), now_s)

    def cut(self, sources: Iterable[TP]) -> None:
        """Note that the open segments of these sources are on their way to the broker."""
        for tp in sources:
            began_s = self._began_s.pop((_OPEN, tp), None)
            if began_s is not None:
                self._began_s.setdefault((_SENT, tp), began_s)

    def committed(self, sources: Iterable[TP]) -> None:
        """Note that what was on its way has been committed, or is no longer ours."""
        for tp in sources:
            self._began_s.pop((_SENT, tp), None)

    def clear(self) -> None:
        """Forget all sources."""
        self._began_s.clear()

    def age_s(self, tp: TP, now_s: float) -> float:
        """Return how old the oldest message is that is not committed; 0 where all are."""
        began = [self._began_s.get((state, tp), now_s) for state in (_SENT, _OPEN)]
        return max(now_s - min(began), 0.0)
