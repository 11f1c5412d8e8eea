"""Which source partitions need a mark: a message that proves how far their segments count."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from faust.types import TP

from tailbudget.streams.segment_sender import Cut

MARK_S: Final = 5.0
"""How often an owner marks each source: bounds what a restarted audit reads again."""


class Proofs:
    """What the next segments of a source do not prove by themselves, a mark has to."""

    def __init__(self) -> None:
        self._committed: dict[TP, frozenset[str]] = {}
        self._marked_at = time.monotonic()

    def clear(self) -> None:
        """Forget what was committed: others own the sources now."""
        self._committed.clear()

    def committed(self, tp: TP, services: frozenset[str]) -> None:
        """Take note of the services of a source's segment that counts."""
        self._committed[tp] = services

    @property
    def due(self) -> bool:
        """Whether all sources are to be marked, whatever is sent."""
        return time.monotonic() - self._marked_at >= MARK_S

    def unproven(self, cut: Cut, sources: Iterable[TP]) -> list[TP]:
        """Return those of our sources whose last segment the messages of this tick don't prove."""
        mine = list(sources)
        if self.due:
            self._marked_at = time.monotonic()
            self._committed.clear()
            return mine
        committed, self._committed = self._committed, {}
        return [
            tp
            for tp, services in committed.items()
            if tp in mine and not (tp in cut and services <= cut[tp][1].services)
        ]
