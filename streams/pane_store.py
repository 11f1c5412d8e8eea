"""The panes of one service in the audit agent: what is folded, and what ClickHouse has of it.

A pane is written whole, with a frontier: for each source, the offset up to which its records are
in the pane. A restarted agent reads a pane back before it adds to it and skips what the frontier
covers, so reading the panes topic again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tailbudget.models.merge import merge
from tailbudget.models.select import split_panes
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.summary import Summary
from tailbudget.streams.assembly import Folded

MOST_PENDING: Final = 12
"""Summaries of a pane that wait to be merged."""

MOST_GROUPS: Final = 5000
"""Groups of a pane's summaries that wait to be merged: each has the full width of its moments,
some kilobytes, however few records it is of."""


@dataclass(slots=True)
class _Pane:
    summary: Summary | None = None
    pending: list[Summary] = field(default_factory=list)
    frontier: dict[str, int] = field(default_factory=dict)
    version: int = 0
    oldest: int | None = None
    writing: int | None = None

    @property
    def crowded(self) -> bool:
        """Return whether so much is pending that it should be merged."""
        groups = sum(len(part.pane_ns) for part in self.pending)
        return len(self.pending) >= MOST_PENDING or groups >= MOST_GROUPS

    def settle(self) -> Summary:
        """Merge what is pending and return the pane's summary."""
        parts = ([] if self.summary is None else [self.summary]) + self.pending
        self.summary = parts[0] if len(parts) == 1 else merge(parts)
        self.pending = []
        return self.summary


class PaneStore:
    """The panes of one service that are in memory.

    Attributes:
        service: the service's name.
        known_ns: panes that start later than this are not in ClickHouse unless we wrote them.
    """

    def __init__(self, service: str, *, pane_s: int, known_ns: int | None) -> None:
        self.service = service
        self.known_ns = known_ns
        self._pane_s = pane_s
        self._panes: dict[int, _Pane] = {}

    def missing(self, folded: Iterable[Folded]) -> list[int]:
        """Return the panes that must be loaded before these segments can be added."""
        if self.known_ns is None:
            return []
        touched = {pane for one in folded for s in one.summaries for pane in _panes_of(s)}
        return sorted(pane for pane in touched if pane not in self._panes and pane <= self.known_ns)

    def load(self, asked: Sequence[int], stored: Mapping[int, StoredPane]) -> None:
        """Take what ClickHouse has of the panes that were asked for."""
        for pane_ns in asked:
            found = stored.get(pane_ns)
            self._panes[pane_ns] = (
                _Pane()
                if found is None
                else _Pane(found.summary, [], dict(found.frontier), found.version)
            )

    def fold(self, folded: Folded) -> list[Summary]:
        """Add a segment; return what was new, pane by pane."""
        added: list[Summary] = []
        touched: set[int] = set()
        for summary in folded.summaries:
            for pane_ns, part in split_panes(summary).items():
                pane = self._panes.setdefault(pane_ns, _Pane())
                if _covered(folded, pane.frontier):
                    continue
                pane.pending.append(part)
                if pane.crowded:
                    pane.settle()
                pane.oldest = (
                    folded.offset if pane.oldest is None else min(folded.offset, pane.oldest)
                )
                touched.add(pane_ns)
                added.append(part)
        for pane_ns in touched:
            self._panes[pane_ns].frontier.update(folded.ends)
        return added

    def dirty(self, version: int) -> list[StoredPane]:
        """Return the panes that differ from what ClickHouse has, to be written as `version`.

        Until `written` is called, `floor` still covers them.
        """
        rows = []
        for pane_ns, pane in sorted(self._panes.items()):
            if pane.oldest is None and pane.writing is None:
                continue
            summary = pane.settle()
            pane.version = max(version, pane.version + 1)
            offsets = [o for o in (pane.oldest, pane.writing) if o is not None]
            pane.oldest, pane.writing = None, min(offsets)
            rows.append(
                StoredPane(pane_ns, self._pane_s, summary, dict(pane.frontier), pane.version)
            )
        return rows

    def written(self) -> None:
        """Take note that what `dirty` returned last is durable."""
        for pane in self._panes.values():
            pane.writing = None

    def floor(self) -> int | None:
        """Return the oldest offset of the panes topic that is not durable, None if all is."""
        offsets = [
            offset
            for pane in self._panes.values()
            for offset in (pane.oldest, pane.writing)
            if offset is not None
        ]
        return min(offsets, default=None)

    def evict(self, before_ns: int) -> None:
        """Forget durable panes that start before `before_ns`; they are read back when needed."""
        for pane_ns, pane in list(self._panes.items()):
            if pane_ns < before_ns and pane.oldest is None and pane.writing is None:
                del self._panes[pane_ns]
                self.known_ns = max(pane_ns, self.known_ns or pane_ns)


def _panes_of(summary: Summary) -> set[int]:
    return {int(pane) for pane in set(summary.pane_ns.tolist())} | {p for p, _ in summary.ledger}


def _covered(folded: Folded, frontier: Mapping[str, int]) -> bool:
    """Return whether a pane has these segments: all that was sent together, or none of it."""
    return any(end <= frontier.get(source, -1) for source, end in folded.ends.items())
