"""Counts of one objective over a long time, asked for by windows that end now.

A ring of slices: adding costs what is added, a window costs one sum over its slices, and memory
never grows. Late events amend their slice while it is held.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tailbudget.schemas.tally import Count, Tally

_NEAR: Final = 64


class SloCounts:
    """The newest `capacity` slices.

    Args:
        slice_ns: length of a slice.
        capacity: how many are held.

    Attributes:
        too_old: events that came when their slice was no longer held.
        first_ns: start of the first slice ever that had events, held or not; None before it.
        newest_ns: end of the newest slice with events; None before the first.
    """

    def __init__(self, slice_ns: int, capacity: int) -> None:
        self.slice_ns = slice_ns
        self.too_old = 0
        self.first_ns: int | None = None
        self._capacity = capacity
        self._cells = np.zeros((3, capacity), np.int64)
        self._head: int | None = None

    @property
    def newest_ns(self) -> int | None:
        """End of the newest slice that has events."""
        return None if self._head is None else (self._head + 1) * self.slice_ns

    def add(self, counted: Tally) -> None:
        """Add events; those of slices that are no longer held are counted as `too_old`."""
        numbers = counted.start_ns // self.slice_ns
        if not len(numbers):
            return
        first_ns = int(counted.start_ns[0])
        self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        self._reach(int(numbers[-1]))
        held = numbers > self._oldest() - 1
        columns = np.stack([counted.total, counted.bad, counted.unknown])
        self.too_old += int(columns[0::2, ~held].sum())
        at = numbers[held] % self._capacity
        for row, column in zip(self._cells, columns[:, held], strict=True):
            np.add.at(row, at, column)

    def last(self, now_ns: int, length_ns: int) -> Count:
        """Return the events of the slices that start later than `length_ns` before now."""
        now = now_ns // self.slice_ns
        return self._sum(now - max(length_ns // self.slice_ns, 1) + 1, now + 1)

    def between(self, start_ns: int, end_ns: int) -> Tally:
        """Return the held slices with events that start in [start_ns, end_ns)."""
        low, high = self._clip(-(-start_ns // self.slice_ns), -(-end_ns // self.slice_ns))
        first, end = low % self._capacity, high % self._capacity
        cells = self._cells[:, first:end]
        if low < high and first >= end:
            cells = np.concatenate([self._cells[:, first:], self._cells[:, :end]], axis=1)
        filled = np.flatnonzero(cells[0] | cells[1] | cells[2])
        return Tally(self.slice_ns, (filled + low) * self.slice_ns, *cells[:, filled])

    def newest_before(self, now_ns: int) -> int | None:
        """Return the end of the newest slice with events that begins by now; None without any."""
        if self._head is None:
            return None
        low, high = self._clip(self._oldest(), now_ns // self.slice_ns + 1)
        size = _NEAR
        while low < high:  # The newest slice is nearly always among the last few.
            numbers = np.arange(max(low, high - size), high)
            filled = numbers[self._cells[:, numbers % self._capacity].any(axis=0)]
            if len(filled):
                return (int(filled[-1]) + 1) * self.slice_ns
            high, size = int(numbers[0]), size * 8
        return None

    def _oldest(self) -> int:
        return (self._head or 0) - self._capacity + 1

    def _clip(self, low: int, high: int) -> tuple[int, int]:
        """Return the part of [low, high) that is held."""
        if self._head is None:
            return 0, 0
        low = max(low, self._oldest())
        return low, max(low, min(high, self._head + 1))

    def _reach(self, number: int) -> None:
        """Let the ring hold a slice, and forget those that it pushes out."""
        if self._head is None:
            self._head = number
        elif number > self._head:
            first = max(self._head + 1, number - self._capacity + 1)
            self._cells[:, np.arange(first, number + 1) % self._capacity] = 0
            self._head = number

    def _sum(self, low: int, high: int) -> Count:
        low, high = self._clip(low, high)
        if low >= high:
            return Count()
        first, end = low % self._capacity, high % self._capacity
        if first < end:
            total, bad, unknown = self._cells[:, first:end].sum(axis=1).tolist()
        else:
            sums = self._cells[:, first:].sum(axis=1) + self._cells[:, :end].sum(axis=1)
            total, bad, unknown = sums.tolist()
        return Count(total, bad, unknown)
