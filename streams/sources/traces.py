"""Decoder of all formats of traces: spans of messages, put together, to records.

A format gives the spans of one message (`spans_of`); the rest is the same for all. A request is a
record of the message that held the first of its spans. Where a request is judged depends on the
messages alone, whatever batches they come in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import orjson

from tailbudget.schemas import ledger
from tailbudget.schemas.records import NO_SERVICE, Decoded, Rejected
from tailbudget.streams.sources.base import Rules, SourceBatch, SourceMessage
from tailbudget.streams.sources.lines import Lines
from tailbudget.streams.sources.native import NativeDecoder
from tailbudget.streams.sources.span import Span
from tailbudget.streams.sources.tally import Tally
from tailbudget.streams.sources.trace_assembly import Bounds, Held, TraceAssembly
from tailbudget.streams.sources.trace_requests import requests
from tailbudget.streams.sources.translated import MAX_CONTAINER, NotOfFormatError, within
from tailbudget.streams.sources.versions import Versions

_LATEST: Final = 2**63 - 1


@dataclass(slots=True)
class _Yield:
    """What came of messages."""

    tally: Tally = field(default_factory=Tally)
    rejected: list[Rejected] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    arrival_ns: list[int] = field(default_factory=list)


class TraceDecoder:
    """Decodes messages of spans; see the package docstring for what it promises.

    Attributes:
        name: the format.
        says: what a reader of a report must know of all logs of the format.
    """

    name = ""
    says: tuple[str, ...] = ()
    tool: str | None = None

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._native = NativeDecoder(rules)
        self._assembly = TraceAssembly(Bounds(rules.trace_wait_ns))
        self._versions = Versions()

    @staticmethod
    def spans_of(value: bytes) -> Iterable[Span | None]:
        """Return the spans of a message, None for each that is not usable.

        Raises:
            NotOfFormatError: it is no message of the format.
        """
        raise NotImplementedError

    @property
    def first_offset(self) -> int | None:
        """Offset of the oldest message that a held span came with; None where none is held."""
        return self._assembly.first_offset

    def decode(self, messages: Sequence[SourceMessage]) -> Decoded:
        """Decode one micro-batch; never raises for what a message contains."""
        batch, found = SourceBatch.of(messages), _Yield()
        columns = (batch.values, batch.offset.tolist(), batch.arrival_ns.tolist())
        for value, offset, arrival_ns in zip(*columns, strict=True):
            spans = self._spans(value, offset, arrival_ns, found)
            max_ns = arrival_ns + self._rules.max_future_ns
            for held in self._assembly.add(spans, offset, arrival_ns, max_ns):
                self._judge(held, found)
        return self._decoded(found)

    def finish(self) -> Decoded:
        """Decode what is still held, for no more messages will come."""
        found = _Yield()
        for held in self._assembly.finish():
            self._judge(held, found)
        return self._decoded(found)

    @classmethod
    def natives(cls, values: Sequence[bytes], rules: Rules) -> list[bytes]:  # noqa: ARG003
        """Return the requests of messages that stand for themselves, as native records."""
        assembly = TraceAssembly(Bounds(None))
        held: list[Held] = []
        for value in values:
            try:
                spans = [span for span in cls.spans_of(value) if span is not None]
            except NotOfFormatError:
                continue
            held += assembly.add(spans, 0, 0, _LATEST)
        held += assembly.finish()
        found = (requests(one.spans.values()).records for one in held)
        return [orjson.dumps(record) for records in found for record in records]

    def _spans(
        self, value: bytes | None, offset: int, arrival_ns: int, found: _Yield
    ) -> Sequence[Span]:
        default = self._rules.service or NO_SERVICE
        if not value or value.isspace():
            found.tally.add(default, arrival_ns, ledger.TOMBSTONE)
            return ()
        try:
            every = list(self.spans_of(within(value, MAX_CONTAINER)))
        except NotOfFormatError as error:
            found.tally.add(default, arrival_ns, error.reason)
            # Without its text, which may hold what people wrote.
            found.rejected.append(Rejected(offset, error.reason, str(error), b""))
            return ()
        spans = [span for span in every if span is not None]
        if len(spans) < len(every):
            count = len(every) - len(spans)
            found.tally.add(default, arrival_ns, ledger.UNUSABLE, count)
        return spans

    def _judge(self, held: Held, found: _Yield) -> None:
        spans = held.spans.values()
        whole = requests(spans)
        for record in whole.records:
            found.records.append(orjson.dumps(record))
            found.offset.append(held.offset)
            found.arrival_ns.append(held.arrival_ns)
        first = min(spans, key=lambda span: span.start_ns)
        counts = {
            **whole.counts,
            ledger.DUPLICATE: held.repeated,
            ledger.BEYOND: held.beyond,
            ledger.UNHELD: int(held.early),
        }
        service = first.service or self._rules.service or NO_SERVICE
        time_ns = self._credible(first.start_ns, held.arrival_ns)
        for reason, count in counts.items():
            if count:
                found.tally.add(service, time_ns, reason, count)
        self._versions.see(spans, self._rules.service)

    def _credible(self, time_ns: int, arrival_ns: int) -> int:
        most_ns = arrival_ns + self._rules.max_future_ns
        return time_ns if 0 < time_ns <= most_ns else arrival_ns

    def _decoded(self, found: _Yield) -> Decoded:
        lines = Lines(
            found.records,
            found.records,
            np.array(found.offset, np.int64),
            np.array(found.arrival_ns, np.int64),
            b"\n".join(found.records),
        )
        decoded = self._native.decode_lines(lines)
        counts = Counter(decoded.ledger)
        counts.update(found.tally.counts)
        return replace(
            decoded,
            ledger=dict(counts),
            rejected=(*found.rejected, *decoded.rejected),
            deploys=self._versions.taken(),
        )
