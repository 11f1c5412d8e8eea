"""Decides which segments count: pure state, one object a partition of the panes topic.

A segment is held until something proves that its end is committed, then folded: it counts for
good. Held segments may be looked at (a verdict wants the newest data) but are written nowhere.
See `streams.protocol` for why this counts every record exactly once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from tailbudget.schemas import wire
from tailbudget.schemas.summary import Summary
from tailbudget.streams.protocol import Mark, Segment


@dataclass(frozen=True, slots=True)
class Folded:
    """A segment's share of one service that counts for good.

    Attributes:
        service: the service's name.
        source: the source partition.
        end: one past the last source offset that it covers.
        offset: offset of its first message in the panes topic.
        summaries: the parts of its summary.
        size: bytes of these parts on the wire.
    """

    service: str
    source: str
    end: int
    offset: int
    summaries: tuple[Summary, ...]
    size: int


@dataclass(slots=True)
class _Held:
    generation: int
    start: int
    end: int
    offset: int
    parts: dict[int, Summary]
    sizes: dict[int, int]


@dataclass(slots=True)
class _Source:
    generation: int = -1
    mark_offset: int | None = None
    watermark_ns: int = 0
    held: dict[str, _Held] = field(default_factory=dict)
    folded_end: dict[str, int] = field(default_factory=dict)


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
        summary = wire.decode(message.body) if isinstance(message, Segment) else None
        source = self._sources[message.source]
        if message.generation < source.generation:
            self.ignored += 1
            return []
        source.generation = message.generation
        source.watermark_ns = max(source.watermark_ns, message.watermark_ns)
        if isinstance(message, Mark):
            source.mark_offset = offset
            return self._settle(message.source, source, message.start, message.generation)
        assert summary is not None  # noqa: S101  (set above for every Segment)
        if message.start < source.folded_end.get(message.service, 0):
            self.ignored += 1
            return []
        folded = self._settle(message.source, source, message.start, message.generation)
        self._hold(source, offset, message, summary)
        return folded

    def held(self, service: str) -> Iterator[Summary]:
        """Yield the summaries of this service that are not proven yet."""
        for source in self._sources.values():
            if (held := source.held.get(service)) is not None:
                yield from held.parts.values()

    @property
    def held_bytes(self) -> int:
        """Bytes on the wire of what is held."""
        held = (one for source in self._sources.values() for one in source.held.values())
        return sum(size for one in held for size in one.sizes.values())

    def floor(self, gone: AbstractSet[str] = frozenset()) -> int | None:
        """Return the oldest offset that a restart must read again, None when there is none.

        It covers held segments and the newest mark of every source, which fences off the past;
        marks of sources that are `gone` are left out.
        """
        offsets = [held.offset for s in self._sources.values() for held in s.held.values()]
        offsets += [
            source.mark_offset
            for name, source in self._sources.items()
            if source.mark_offset is not None and name not in gone
        ]
        return min(offsets, default=None)

    def watermarks(self) -> dict[str, int]:
        """Return the newest event time, in nanoseconds, of each source."""
        return {name: source.watermark_ns for name, source in self._sources.items()}

    def _settle(self, name: str, source: _Source, start: int, generation: int) -> list[Folded]:
        """Fold what `start` proves, drop what a newer owner starts before the end of."""
        folded = []
        for service, held in list(source.held.items()):
            if held.end <= start:
                source.folded_end[service] = held.end
                parts = tuple(held.parts[part] for part in sorted(held.parts))
                size = sum(held.sizes.values())
                folded.append(Folded(service, name, held.end, held.offset, parts, size))
            elif held.generation < generation:
                self.dropped += 1
            else:
                continue
            del source.held[service]
        return folded

    def _hold(self, source: _Source, offset: int, message: Segment, summary: Summary) -> None:
        held = source.held.get(message.service)
        if held is None or (held.start, held.end) != (message.start, message.end):
            held = _Held(message.generation, message.start, message.end, offset, {}, {})
            source.held[message.service] = held
        held.parts[message.part] = summary
        held.sizes[message.part] = len(message.body)
