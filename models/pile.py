"""A sum of summaries that grows long, such as a timeline."""

from __future__ import annotations

from collections.abc import Callable

from tailbudget.models.merge import merge
from tailbudget.schemas.summary import Summary


class Pile:
    """Adds summaries up once as much waits as was added up before.

    Each value is then added a few times, however many parts come.
    """

    def __init__(self) -> None:
        self._parts: list[Summary] = []

    def add(self, part: Summary) -> None:
        """Add a summary."""
        self._parts.append(part)
        first, *rest = self._parts
        if sum(len(one.cell) for one in rest) >= len(first.cell):
            self.whole()

    def whole(self) -> Summary | None:
        """Return the sum; None when nothing was added."""
        if len(self._parts) > 1:
            self._parts = [merge(self._parts)]
        return self._parts[0] if self._parts else None

    def each(self, change: Callable[[Summary], Summary]) -> None:
        """Change all that was added, in a way that does not care how it was added up."""
        self._parts = [change(part) for part in self._parts]
