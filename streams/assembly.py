"""Decides which segments count: pure state, one object a partition of the panes topic.

A segment is held until something proves that its end is committed, then folded: it counts for
good. Held segments may be looked at (a verdict wants the newest data) but are written nowhere.
See `streams.protocol` for why this counts every record exactly once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from tailbudget.schemas import wire
from tailbudget.schemas.summary import Summary
from tailbudget.streams.protocol import Mark, Segment, Span


@dataclass(frozen=True, slots=True)
class Folded:
    """A service's share of segments that were sent together, which counts for good.

    Attributes:
        service: the service's name.
        ends: source partition to one past the last source offset that it covers.
        offset: offset of its first message in the panes topic.
        summaries: the parts of its summary.
        size: bytes of these parts on the wire.
    """

    service: str
    ends: Mapping[str, int]
    offset: int
    summaries: tuple[Summary, ...]
    size: int


@dataclass(slots=True)
class _Held:
    service: str
    generation: int
    spans: dict[str, Span]
    offset: int
    parts: dict[int, Summary]
    sizes: dict[int, int]

    def same(self, generation: int, spans: Mapping[str, Span]) -> bool:
        """Return whether a message is another part of what is held."""
        return generation == self.generation and spans == self.spans


@dataclass(slots=True)
class _Source:
    generation: int = -1
    mark_offset: int | None = None
    watermark_ns: int = 0
    held: dict[str, _Held] = field(default_factory=dict)
    folded_end: dict[str, int] = field(default_factory=dict)

    def see(self, generation: int, watermark_ns: int) -> None:
        """Take note of an owner that is not a past one, and of event time."""
        self.generation = generation
        self.watermark_ns = max(self.watermark_ns, watermark_ns)


@dataclass(slots=True)
class Assembly:
    """Holds, folds and drops the segments of one partition of the panes topic.

    Attributes:
        ignored: messages that were stale: of an older generation, or counted before.
        dropped: held segments that were never committed; their records came again.
    """

    ignored: int = 0
    dropped: int = 0
    _sources: defaultdict[str, _Source] = field(default_factory=lambda: defaultdict(_Source))

    def receive(self, offset: int, message: Segment | Mark) -> list[Folded]:
        """Take the message at this offset of the panes topic; return what now counts for good.

        Raises:
            WireError: the message's summary cannot be read; nothing was changed.
        """
        if isinstance(message, Mark):
            return self._mark(offset, message)
        return self._segment(offset, message, wire.decode(message.body))

    def _mark(self, offset: int, mark: Mark) -> list[Folded]:
        source = self._sources[mark.source]
        if mark.generation < source.generation:
            self.ignored += 1
            return []
        source.see(mark.generation, mark.watermark_ns)
        source.mark_offset = offset
        return self._settle(mark.source, mark.start, mark.generation)

    def _segment(self, offset: int, message: Segment, summary: Summary) -> list[Folded]:
        sources = [self._sources[span.source] for span in message.spans]
        if any(message.generation < source.generation for source in sources):
            self.ignored += 1
            return []
        for span, source in zip(message.spans, sources, strict=True):
            source.see(message.generation, span.watermark_ns)
        folded_ends = [source.folded_end.get(message.service, 0) for source in sources]
        if any(s.start < end for s, end in zip(message.spans, folded_ends, strict=True)):
            self.ignored += 1
            return []
        folded: list[Folded] = []
        for span in message.spans:
            folded += self._settle(span.source, span.start, message.generation)
        self._hold(offset, message, summary)
        return folded

    def held(self, service: str) -> Iterator[Summary]:
        """Yield the summaries of this service that are not proven yet."""
        for held in self._held():
            if held.service == service:
                yield from held.parts.values()

    @property
    def held_bytes(self) -> int:
        """Bytes on the wire of what is held."""
        return sum(size for held in self._held() for size in held.sizes.values())

    def _held(self) -> Iterable[_Held]:
        """Return what is held; segments that were sent together are one."""
        held = (one for source in self._sources.values() for one in source.held.values())
        return {id(one): one for one in held}.values()

    def floor(self, gone: AbstractSet[str] = frozenset()) -> int | None:
        """Return the oldest offset that a restart must read again, None when there is none.

        It covers held segments and the newest mark of every source, which fences off the past;
        marks of sources that are `gone` are left out.
        """
        offsets = [held.offset for held in self._held()]
        offsets += [
            source.mark_offset
            for name, source in self._sources.items()
            if source.mark_offset is not None and name not in gone
        ]
        return min(offsets, default=None)

    def watermarks(self) -> dict[str, int]:
        """Return the newest event time, in nanoseconds, of each source."""
        return {name: source.watermark_ns for name, source in self._sources.items()}

    def _settle(self, name: str, start: int, generation: int) -> list[Folded]:
        """Fold what `start` proves, drop what a newer owner starts before the end of.

        What was sent together was committed together: the proof of one source serves all.
        """
        folded = []
        for held in list(self._sources[name].held.values()):
            if held.spans[name].end <= start:
                self._release(held)
                folded.append(self._fold(held))
            elif held.generation < generation:
                self._release(held)
                self.dropped += 1
        return folded

    def _fold(self, held: _Held) -> Folded:
        ends = {source: span.end for source, span in held.spans.items()}
        for source, end in ends.items():
            self._sources[source].folded_end[held.service] = end
        parts = tuple(held.parts[part] for part in sorted(held.parts))
        return Folded(held.service, ends, held.offset, parts, sum(held.sizes.values()))

    def _release(self, held: _Held) -> None:
        for source in held.spans:
            self._sources[source].held.pop(held.service, None)

    def _hold(self, offset: int, message: Segment, summary: Summary) -> None:
        spans = {span.source: span for span in message.spans}
        before = {name: self._sources[name].held.get(message.service) for name in spans}
        held = next(iter(before.values()))
        if held is None or not held.same(message.generation, spans):
            for other in before.values():
                if other is not None:
                    self._release(other)
            held = _Held(message.service, message.generation, spans, offset, {}, {})
            for name in spans:
                self._sources[name].held[message.service] = held
        held.parts[message.part] = summary
        held.sizes[message.part] = len(message.body)
