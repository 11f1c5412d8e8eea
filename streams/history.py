"""Evidence of any range of a service from ClickHouse, by rollups where they hold.

A range is cut into days, hours and five minutes as far as they fit, and panes at its ends. What
has no rollup, or a stale one, is merged from what is below it and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from tailbudget.models.evidence import Evidence, Gathering, timeline_slot_ns
from tailbudget.models.evidence_wire import dump, load
from tailbudget.schemas.errors import WireError
from tailbudget.schemas.sections import ColdWindow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.rollups import PanesOf, Rollup, Spans

SECOND_NS: Final = 1_000_000_000
SPANS_S: Final = (300, 3_600, 86_400)
"""Lengths of rollups; each divides the next."""

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
        self._complete_ns = 0

    def evidence(self, wanted: Span) -> Evidence:
        """Return the evidence of all panes that start in a range.

        Raises:
            ClickHouseError: it does not answer.
        """
        found = self._store.panes_by_span(
            Spans(self._service, SPANS_S[-1], wanted.start_ns, wanted.end_ns)
        )
        if not found:
            return self._gathering(SECOND_NS, wanted).evidence()
        pane_ns = max(span.pane_s for span in found.values()) * SECOND_NS
        first = min(span.first_ns for span in found.values())
        last = max(span.last_ns for span in found.values()) + pane_ns
        slot_ns = timeline_slot_ns(last - first, pane_ns)
        usable = [
            span_s
            for span_s in SPANS_S
            if span_s * SECOND_NS % pane_ns == 0
            and timeline_slot_ns(span_s * SECOND_NS, pane_ns) <= slot_ns
        ]
        self._complete_ns = last
        gathering = self._gathering(pane_ns, wanted)
        self._gather(gathering, wanted, pane_ns, usable)
        return gathering.evidence()

    def _gather(
        self, gathering: Gathering, wanted: Span, pane_ns: int, spans_s: Sequence[int]
    ) -> None:
        """Add a range: the longest spans that fit, and what is left at its ends."""
        if wanted.start_ns >= wanted.end_ns:
            return
        if not spans_s:
            self._gather_panes(gathering, wanted, pane_ns)
            return
        span_ns = spans_s[-1] * SECOND_NS
        low = -(-wanted.start_ns // span_ns) * span_ns
        high = wanted.end_ns // span_ns * span_ns
        if low >= high:
            self._gather(gathering, wanted, pane_ns, spans_s[:-1])
            return
        self._gather(gathering, Span(wanted.start_ns, low), pane_ns, spans_s[:-1])
        for part in self._rolled(Span(low, high), pane_ns, spans_s[-1]):
            gathering.add_evidence(part)
        self._gather(gathering, Span(high, wanted.end_ns), pane_ns, spans_s[:-1])

    def _gather_panes(self, gathering: Gathering, wanted: Span, pane_ns: int) -> None:
        starts = range(-(-wanted.start_ns // pane_ns) * pane_ns, wanted.end_ns, pane_ns)
        for _, pane in sorted(self._store.read_panes(self._service, list(starts)).items()):
            gathering.add(pane.summary)

    def _rolled(self, wanted: Span, pane_ns: int, span_s: int) -> Iterator[Evidence]:
        """Yield the evidence of each span of a range that has panes."""
        spans = Spans(self._service, span_s, wanted.start_ns, wanted.end_ns)
        panes, made = self._store.panes_by_span(spans), self._store.rollups_made(spans)
        for start_ns, span in sorted(panes.items()):
            whole = Span(start_ns, start_ns + span_s * SECOND_NS)
            fingerprint = self._fingerprint(whole, span)
            kept = self._kept(start_ns, span_s) if made.get(start_ns) == fingerprint else None
            yield kept or self._made(whole, pane_ns, span_s, fingerprint)

    def _kept(self, start_ns: int, span_s: int) -> Evidence | None:
        payload = self._store.read_rollup(self._service, span_s, start_ns)
        try:
            return None if payload is None else load(payload)
        except WireError:
            return None  # of another release: it is made anew

    def _made(self, whole: Span, pane_ns: int, span_s: int, fingerprint: int) -> Evidence:
        gathering = self._gathering(pane_ns, whole)
        below = SPANS_S[: SPANS_S.index(span_s)]
        self._gather(gathering, whole, pane_ns, [s for s in below if s * SECOND_NS % pane_ns == 0])
        evidence = gathering.evidence()
        if whole.end_ns <= self._complete_ns:  # else panes of it are still to come
            rollup = Rollup(
                service=self._service,
                span_s=span_s,
                start_ns=whole.start_ns,
                fingerprint=fingerprint,
                made_ns=self._now_ns,
                payload=dump(evidence),
            )
            self._store.write_rollups([rollup])
        return evidence

    def _gathering(self, pane_ns: int, wanted: Span) -> Gathering:
        return Gathering(self._service, pane_ns=pane_ns, cold_windows=self._touching(wanted))

    def _touching(self, wanted: Span) -> list[ColdWindow] | None:
        if self._cold is None:
            return None
        return [
            one
            for one in self._cold
            if one.start_ns < wanted.end_ns and one.end_ns > wanted.start_ns
        ]

    def _fingerprint(self, whole: Span, span: PanesOf) -> int:
        """Return what a rollup must have been merged from to count."""
        deploys = self._touching(whole)
        text = repr(None if deploys is None else [(d.start_ns, d.end_ns) for d in deploys])
        mark = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        return (span.fingerprint ^ mark) & _MARK
