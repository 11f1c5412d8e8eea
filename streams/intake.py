"""One source partition as ingest sees it: what was read, and what is not yet sent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.columns import take
from tailbudget.schemas import ledger
from tailbudget.schemas.records import Columns, Decoded, Outcome, Rejected
from tailbudget.schemas.rows import DeployRow
from tailbudget.streams.dedup import Dedup
from tailbudget.streams.held_attempts import HeldAttempts
from tailbudget.streams.operations import Limits
from tailbudget.streams.sources import Decoder, Rules
from tailbudget.streams.sources.native import NativeDecoder

COUNTED_LATER: Final = frozenset({ledger.ACCEPTED, ledger.FAILED})
"""What the summary itself counts, once duplicates are gone."""


@dataclass(frozen=True, slots=True)
class Pending:
    """The records of one segment, ready to be summarised.

    Attributes:
        start: first source offset.
        end: one past the last.
        columns: decoded micro-batches by service.
        rejected: what goes to the dead-letter topic.
        ledger: service to (time_ns, reason) to count.
        held_from: offset of the oldest attempt or span that is held at `end`; `end` when none is.
        deploys: changes of versions that the messages show.
    """

    start: int
    end: int
    columns: Mapping[str, list[Columns]]
    rejected: tuple[Rejected, ...]
    ledger: Mapping[str, Counter[tuple[int, str]]]
    held_from: int
    deploys: tuple[DeployRow, ...] = ()

    @property
    def services(self) -> frozenset[str]:
        """Return the services that have anything in this segment."""
        return frozenset(self.columns) | frozenset(self.ledger)

    def reasons(self) -> Counter[str]:
        """Return what became of its records, by the reasons of the ledger; weights do not count."""
        counted: Counter[str] = Counter()
        for ledger_of in self.ledger.values():
            for (_, reason), count in ledger_of.items():
                counted[reason] += count
        for parts in self.columns.values():
            for columns in parts:
                counted[ledger.ACCEPTED] += len(columns)
                counted[ledger.FAILED] += int((columns.outcome != Outcome.OK).sum())
        return counted


@dataclass(slots=True)
class Intake:
    """Collects what was read from one source partition under one assignment.

    Attributes:
        key: name of the source, see `protocol.source_key`.
        generation: the group's generation when it was assigned.
        committed: everything below is committed.
        start: first offset of the open segment.
        position: next offset to read; below `start` while what was held is read again.
        pane_ns: length of a pane.
        grace_ns: how long a pane waits for stragglers before a record counts as late.
        dedup: remembers the request ids of this source.
        records: accepted records in the open segment.
        watermark_ns: newest event time seen.
        attempts: holds failed attempts for the next ones of their operations.
        held_from: offset of the oldest attempt or span that was held at `committed`.
        decoder: of the source; those of traces hold spans.
    """

    key: str
    generation: int
    committed: int
    start: int
    position: int
    pane_ns: int
    grace_ns: int
    dedup: Dedup
    records: int = 0
    watermark_ns: int = 0
    attempts: HeldAttempts = field(default_factory=lambda: HeldAttempts(Limits(hold_ns=0)))
    held_from: int = 0
    decoder: Decoder = field(default_factory=lambda: NativeDecoder(Rules()))
    _newest: dict[str, int] = field(default_factory=dict)
    _columns: defaultdict[str, list[Columns]] = field(default_factory=lambda: defaultdict(list))
    _rejected: list[Rejected] = field(default_factory=list)
    _deploys: list[DeployRow] = field(default_factory=list)
    _ledger: defaultdict[str, Counter[tuple[int, str]]] = field(
        default_factory=lambda: defaultdict(Counter)
    )

    @property
    def empty(self) -> bool:
        """Return whether the open segment holds no offsets."""
        return self.position <= self.start

    def add(self, decoded: Decoded, end: int) -> None:
        """Take what became of the messages up to offset `end`."""
        for columns in decoded.services:
            self._add_columns(columns)
        self._rejected.extend(decoded.rejected)
        self._deploys.extend(decoded.deploys)
        for (service, time_ns, reason), count in decoded.ledger.items():
            if reason not in COUNTED_LATER:
                self.count(service, time_ns, reason, count)
        self.position = end

    def replay(self, decoded: Decoded, end: int) -> None:
        """Take what is counted already, for what it says about attempts and ids."""
        for columns in decoded.services:
            self.attempts.add(take(columns, self.dedup.fresh(columns.id_hash)))
        self.attempts.counts()
        self.position = end

    def count(self, service: str, time_ns: int, reason: str, count: int = 1) -> None:
        """Enter something into the ledger of the service's pane at `time_ns`."""
        pane_ns = time_ns - time_ns % self.pane_ns
        self._ledger[service][pane_ns, reason] += count

    def cut(self) -> Pending:
        """Return the open segment and begin the next one behind it."""
        pending = Pending(
            start=self.start,
            end=self.position,
            columns=dict(self._columns),
            rejected=tuple(self._rejected),
            ledger=dict(self._ledger),
            held_from=self._held_from(),
            deploys=tuple(self._deploys),
        )
        self._columns.clear()
        self._rejected.clear()
        self._deploys.clear()
        self._ledger.clear()
        self.records = 0
        self.start = self.position
        return pending

    def status(self) -> dict[str, int]:
        """Return what an operator wants to know."""
        return {
            "read": self.position,
            "committed": self.committed,
            "records_pending": self.records,
            "watermark_ns": self.watermark_ns,
        }

    def _add_columns(self, columns: Columns) -> None:
        fresh = self.dedup.fresh(columns.id_hash)
        if not fresh.all():
            self._count_panes(columns.service, columns.ts_ns[~fresh], ledger.DUPLICATE)
            columns = take(columns, fresh)
        if not len(columns):
            return
        ready = self.attempts.add(columns)
        for (service, time_ns, reason), count in self.attempts.counts().items():
            self.count(service, time_ns, reason, count)
        if ready is not None:
            self._count_late(ready)
            self._columns[ready.service].append(ready)
            self.records += len(ready)
        self._see(columns.service, int(columns.ts_ns.max()))

    def _held_from(self) -> int:
        firsts = (self.attempts.first_offset, self.decoder.first_offset)
        return min((first for first in firsts if first is not None), default=self.position)

    def _see(self, service: str, newest_ns: int) -> None:
        """Move the clock on by records that are held, too."""
        self._newest[service] = max(self._newest.get(service, 0), newest_ns)
        self.watermark_ns = max(self.watermark_ns, newest_ns)

    def _count_late(self, columns: Columns) -> None:
        ts_ns = columns.ts_ns
        newest = self._newest.get(columns.service, 0)
        seen = np.maximum.accumulate(np.concatenate(([newest], ts_ns)))
        self._newest[columns.service] = int(seen[-1])
        self.watermark_ns = max(self.watermark_ns, int(seen[-1]))
        closes = ts_ns - ts_ns % self.pane_ns + self.pane_ns + self.grace_ns
        late = closes <= seen[:-1]
        if late.any():
            self._count_panes(columns.service, ts_ns[late], ledger.LATE)

    def _count_panes(self, service: str, ts_ns: NDArray[np.int64], reason: str) -> None:
        panes, counts = np.unique(ts_ns - ts_ns % self.pane_ns, return_counts=True)
        for pane_ns, count in zip(panes.tolist(), counts.tolist(), strict=True):
            self._ledger[service][pane_ns, reason] += count
