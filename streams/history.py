"""Evidence of any range of a service from ClickHouse, by rollups where they hold.

A range is cut into days, hours and five minutes as far as they fit, and panes at its ends. What
has no rollup, or a stale one, is merged from what is below it and kept for the next report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import structlog

from tailbudget.models.evidence import Evidence, Gathering
from tailbudget.models.evidence_wire import dump, load
from tailbudget.schemas.errors import ConfigError, StorageError, WireError
from tailbudget.schemas.sections import ColdWindow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.rollups import PanesOf, Rollup, Spans

log = structlog.get_logger()

SECOND_NS: Final = 1_000_000_000
SPANS_S: Final = (300, 3_600, 86_400)
"""Lengths of rollups; each divides the next."""

PANES_AT_ONCE: Final = 360
"""Panes that a query names: an hour of them."""

ROLLUPS_AT_ONCE: Final = 16
"""Rollups an insert, each of which is a part of a table."""

_MARK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Span:
    """A span of event time.

    Attributes:
        start_ns: its start.
        end_ns: its end, exclusive.
    """

    start_ns: int
    end_ns: int


class History:
    """Reads one service back.

    Args:
        store: ClickHouse.
        service: the service's name.
        cold_windows: spans after its deploys; None when nobody announced any.
        now_ns: what new rollups are dated by.
    """

    def __init__(
        self,
        store: ClickHouse,
        service: str,
        *,
        cold_windows: Sequence[ColdWindow] | None,
        now_ns: int,
    ) -> None:
        self._store = store
        self._service = service
        self._cold = cold_windows
        self._now_ns = now_ns
        self._pane_ns = SECOND_NS
        self._complete_ns = 0
        self._unkept: list[Rollup] = []

    def evidence(self, wanted: Span) -> Evidence:
        """Return the evidence of all panes that start in a range.

        Raises:
            ClickHouseError: it does not answer.
        """
        found = self._store.panes_by_span(self._spans(wanted, SPANS_S[-1])).values()
        # Panes of several lengths are taken for the longest: then a cold window misses none.
        self._pane_ns = max((span.pane_s for span in found), default=1) * SECOND_NS
        newest_ns = self._store.newest_pane(self._service)
        self._complete_ns = 0 if newest_ns is None else newest_ns + self._pane_ns
        gathering = Gathering(self._service, pane_ns=self._pane_ns, cold_windows=self._cold)
        self._gather(gathering, wanted, SPANS_S, keep=True)
        self._keep(at_least=1)
        return gathering.evidence()

    def _gather(
        self, gathering: Gathering, wanted: Span, spans_s: Sequence[int], *, keep: bool
    ) -> None:
        """Add a range: the longest spans that fit, and what is left at its ends.

        Args:
            gathering: what to add to.
            wanted: the range.
            spans_s: lengths of the rollups to use.
            keep: whether to make those that lack.
        """
        if wanted.start_ns >= wanted.end_ns:
            return
        if not spans_s:
            self._gather_panes(gathering, wanted)
            return
        span_ns = spans_s[-1] * SECOND_NS
        low = -(-wanted.start_ns // span_ns) * span_ns
        high = wanted.end_ns // span_ns * span_ns
        if low >= high:
            self._gather(gathering, wanted, spans_s[:-1], keep=keep)
            return
        self._gather(gathering, Span(wanted.start_ns, low), spans_s[:-1], keep=keep)
        self._gather_spans(gathering, Span(low, high), spans_s, keep=keep)
        self._gather(gathering, Span(high, wanted.end_ns), spans_s[:-1], keep=keep)

    def _gather_spans(
        self, gathering: Gathering, wanted: Span, spans_s: Sequence[int], *, keep: bool
    ) -> None:
        """Add a range of whole spans of the last length."""
        span_s = spans_s[-1]
        spans = self._spans(wanted, span_s)
        panes, made = self._store.panes_by_span(spans), self._store.rollups_made(spans)
        if not keep and not made:
            self._gather_panes(gathering, wanted)
            return
        marks = {
            start_ns: self._fingerprint(Span(start_ns, start_ns + span_s * SECOND_NS), span)
            for start_ns, span in sorted(panes.items())
        }
        for start_ns, kept in self._kept(marks, made, span_s):
            whole = Span(start_ns, start_ns + span_s * SECOND_NS)
            if kept is not None:
                gathering.add_evidence(kept)
            elif not keep:
                self._gather_panes(gathering, whole)
            elif whole.end_ns > self._complete_ns:  # it still grows; what is below it does not
                self._gather(gathering, whole, spans_s[:-1], keep=True)
            else:
                gathering.add_evidence(self._made(whole, spans_s, marks[start_ns]))

    def _kept(
        self, marks: Mapping[int, int], made: Mapping[int, int], span_s: int
    ) -> Iterator[tuple[int, Evidence | None]]:
        """Yield each span with its rollup; with None where there is none that holds."""
        starts = list(marks)
        for low in range(0, len(starts), ROLLUPS_AT_ONCE):
            some = starts[low : low + ROLLUPS_AT_ONCE]
            valid = [start for start in some if made.get(start) == marks[start]]
            payloads = self._store.read_rollups(self._service, span_s, valid)
            for start_ns in some:
                whole = Span(start_ns, start_ns + span_s * SECOND_NS)
                yield start_ns, self._loaded(whole, payloads.get(start_ns))

    def _gather_panes(self, gathering: Gathering, wanted: Span) -> None:
        starts = self._store.pane_starts(self._service, wanted.start_ns, wanted.end_ns)
        for low in range(0, len(starts), PANES_AT_ONCE):
            some = starts[low : low + PANES_AT_ONCE]
            for pane in self._store.each_pane(self._service, some):
                gathering.add(pane.summary)

    def _loaded(self, whole: Span, payload: bytes | None) -> Evidence | None:
        """Return a rollup; None when it is not what it should be, to be made anew."""
        try:
            found = None if payload is None else load(payload)
        except WireError:
            return None
        if found is None or found.service != self._service:
            return None
        inside = whole.start_ns <= found.start_ns and found.end_ns <= whole.end_ns + self._pane_ns
        return found if inside or not len(found.total.pane_ns) else None

    def _made(self, whole: Span, spans_s: Sequence[int], fingerprint: int) -> Evidence:
        """Merge a span from the rollups just below it that there are, and from panes."""
        cold = self._touching(whole)
        gathering = Gathering(self._service, pane_ns=self._pane_ns, cold_windows=cold)
        self._gather(gathering, whole, spans_s[:-1][-1:], keep=False)
        evidence = gathering.evidence()
        rollup = Rollup(
            service=self._service,
            span_s=spans_s[-1],
            start_ns=whole.start_ns,
            fingerprint=fingerprint,
            made_ns=self._now_ns,
            payload=dump(evidence),
        )
        self._unkept.append(rollup)
        self._keep(at_least=ROLLUPS_AT_ONCE)
        return evidence

    def _keep(self, *, at_least: int) -> None:
        """Write rollups, once there are so many; a user who may only read gets reports, too."""
        if len(self._unkept) < at_least:
            return
        rollups, self._unkept = self._unkept, []
        try:
            self._store.write_rollups(rollups)
        except (ConfigError, StorageError) as error:
            log.info("rollups are not kept", service=self._service, error=error.message)

    def _spans(self, wanted: Span, span_s: int) -> Spans:
        return Spans(self._service, span_s, wanted.start_ns, wanted.end_ns)

    def _touching(self, whole: Span) -> list[ColdWindow]:
        """Return the cold windows that may touch a pane of a span."""
        end_ns = whole.end_ns + self._pane_ns
        return [w for w in self._cold or () if w.start_ns < end_ns and w.end_ns > whole.start_ns]

    def _fingerprint(self, whole: Span, span: PanesOf) -> int:
        """Return what a rollup must have been merged from to count."""
        windows = [(window.start_ns, window.end_ns) for window in self._touching(whole)]
        text = repr((self._pane_ns, windows))
        mark = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        return (span.fingerprint ^ mark) & _MARK
