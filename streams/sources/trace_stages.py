"""Where the time of a request went, by the names of the spans below its own.

A stage is the exclusive time of the spans of one name: the instants at which one of them ran and
no child of it did. Spans of one name that run side by side count once. Spans of several names that
run side by side each have their time, so that stages may exceed the total together: the models
know such stages by that. What no child covers is the request's own, and stays unattributed.

Not waited for, and no stage, is a span that says so, a consumer's side of a message, one that
outlives the request, and what is below such a span.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tailbudget.streams.sources.engine_latency import OUT_OF_RANGE_S
from tailbudget.streams.sources.intervals import Interval, clipped, length_ns, union, without
from tailbudget.streams.sources.span import Kind, Span

SLACK_NS: Final = 1_000_000
"""A child may end so long after the request and be waited for: the coarsest clocks stamp in ms."""

_NS_PER_MS: Final = 1e6
_MS_PER_S: Final = 1e3


@dataclass(frozen=True, slots=True)
class Stages:
    """What became of the spans below a request's own.

    Attributes:
        ms: milliseconds by stage; no credible number where a span ends before it starts, or
            tells parts that cannot be.
        reached: ids of the spans that belong to the request, its own among them.
        asynchronous: how many of them were not waited for.
    """

    ms: Mapping[str, float]
    reached: frozenset[str]
    asynchronous: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """A span on the way down.

    Attributes:
        span: it.
        above: id of the span that it is below.
        shift_ns: by how much its clock, and that of those below it, is set right.
        awaited: the request waits for it.
    """

    span: Span
    above: str
    shift_ns: int
    awaited: bool

    @property
    def interval(self) -> Interval:
        return self.span.start_ns + self.shift_ns, self.span.last_ns + self.shift_ns


def stages(root: Span, children: Mapping[str, Sequence[Span]]) -> Stages:
    """Return the stages of the request that `root` is.

    Args:
        root: a span that has ended.
        children: spans by the id of their parent.
    """
    whole = (root.start_ns, root.last_ns)
    seen = list(_walk(root, children))
    intervals: defaultdict[str, list[Interval]] = defaultdict(list)
    below: defaultdict[str, list[Interval]] = defaultdict(list)
    odd: dict[str, float] = {}
    for one in seen[1:]:
        if one.awaited:
            below[one.above].append(clipped(one.interval, whole))
    for one in seen:
        span = one.span
        if not one.awaited or span.end_ns is None:
            continue
        if span.end_ns < span.start_ns:
            odd[span.name] = (span.end_ns - span.start_ns) / _NS_PER_MS
            continue
        odd |= {name: s * _MS_PER_S for name, s in span.parts_s if s >= OUT_OF_RANGE_S}
        parts = _parts(one) if not below[span.id] else ()
        below[span.id].extend(clipped(interval, whole) for _, interval in parts)
        for name, interval in parts:
            intervals[name].append(clipped(interval, whole))
        if span is not root:
            intervals[span.name] += without(clipped(one.interval, whole), below[span.id])
    found = {name: length_ns(union(own)) / _NS_PER_MS for name, own in intervals.items()}
    asynchronous = sum(not one.awaited for one in seen)
    return Stages(found | odd, frozenset(one.span.id for one in seen), asynchronous)


def _walk(root: Span, children: Mapping[str, Sequence[Span]]) -> Iterator[_Seen]:
    """Yield the spans of a request from its own downwards, each once."""
    met = {root.id}
    waiting = [_Seen(root, "", 0, awaited=True)]
    while waiting:
        above = waiting.pop()
        yield above
        for span in children.get(above.span.id, ()):
            if span.id not in met:
                met.add(span.id)
                shift_ns = above.shift_ns + _skew_ns(above, span)
                seen = _Seen(span, above.span.id, shift_ns, above.awaited)
                waiting.append(replace(seen, awaited=seen.awaited and _is_awaited(seen, root)))


def _is_awaited(one: _Seen, root: Span) -> bool:
    if not one.span.awaited or one.span.kind is Kind.CONSUMER:
        return False
    start, end = one.interval
    return root.start_ns - SLACK_NS <= start <= root.last_ns and end <= root.last_ns + SLACK_NS


def _skew_ns(above: _Seen, child: Span) -> int:
    """Return by how much the clock of a called service is off.

    A client waits for its server, so that a server's span which fits into the client's but lies
    outside of it was stamped by another clock; it is put into the middle.
    """
    caller = above.span
    if child.kind is not Kind.SERVER or caller.kind is not Kind.CLIENT:
        return 0
    start, end = above.interval
    own_start, own_end = child.start_ns + above.shift_ns, child.last_ns + above.shift_ns
    room = (end - start) - (own_end - own_start)
    if room < 0 or (start <= own_start and own_end <= end):
        return 0
    return start + room // 2 - own_start


def _parts(one: _Seen) -> Sequence[tuple[str, Interval]]:
    """Return the parts that a span tells the length of, one after another."""
    start = one.interval[0]
    found: list[tuple[str, Interval]] = []
    for name, seconds in one.span.parts_s:
        if seconds >= OUT_OF_RANGE_S:
            return ()
        end = start + round(seconds * 1e9)
        found.append((name, (start, end)))
        start = end
    return found
