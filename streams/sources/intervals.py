"""Sets of instants as sorted, disjoint intervals [start, end) in nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the instants that any of the intervals holds."""
    joined: list[Interval] = []
    for start, end in sorted(one for one in intervals if one[0] < one[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def without(whole: Interval, holes: Iterable[Interval]) -> list[Interval]:
    """Return the instants of an interval that none of the others holds."""
    rest: list[Interval] = []
    start, end = whole
    for hole_start, hole_end in union(holes):
        if hole_start > start:
            rest.append((start, min(hole_start, end)))
        start = max(start, hole_end)
    if start < end:
        rest.append((start, end))
    return [one for one in rest if one[0] < one[1]]


def clipped(interval: Interval, within: Interval) -> Interval:
    """Return the part of an interval that lies within another; an empty one is (x, x) or less."""
    return max(interval[0], within[0]), min(interval[1], within[1])


def length_ns(intervals: Iterable[Interval]) -> int:
    """Return how long disjoint intervals are together."""
    return sum(end - start for start, end in intervals)
