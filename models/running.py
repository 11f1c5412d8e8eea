"""Whole-number sums over a set of panes, from which any pane can be taken back exactly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import order, run_starts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sparse:
    """Non-zero entries of a flattened table.

    Attributes:
        key: [K] row * width + column.
        value: [K] what stands there.
    """

    key: NDArray[np.int32]
    value: NDArray[np.integer]


@dataclass(slots=True)
class _Part:
    """What one pane added: entries of distinct keys, then loose ones that may repeat them."""

    chunks: list[Sparse] = field(default_factory=list)
    solid: int = 0
    loose: int = 0


class SparseSums:
    """What each pane adds to a table that nobody keeps."""

    def __init__(self) -> None:
        self._parts: defaultdict[int, _Part] = defaultdict(_Part)

    def add(self, pane_ns: int, key: NDArray[np.integer], value: NDArray[np.int64]) -> None:
        """Add one entry a key to a pane; the keys are distinct."""
        part = self._parts[pane_ns]
        part.chunks.append(_narrow(key, value))
        part.loose += len(key)
        if part.loose > part.solid:
            _compact(part)

    def remove(self, pane_ns: int) -> list[Sparse]:
        """Forget a pane; return what it had added, keys distinct within each."""
        return self._parts.pop(pane_ns, _Part()).chunks

    def of(self, panes: Iterable[int]) -> Iterator[Sparse]:
        """Yield what some panes add, keys distinct within each."""
        for pane in panes:
            if pane in self._parts:
                yield from self._parts[pane].chunks


class RunningSums:
    """A table of sums that grows by rows, and the sparse part of each pane in it.

    Adding and removing cost as much as the part is long, however long the span of the panes is.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._table = np.zeros((0, width), np.int64)
        self._sparse = SparseSums()

    @property
    def table(self) -> NDArray[np.int64]:
        """The sums, [rows, width]: a view, to be read before the next change."""
        return self._table

    def grow(self, rows: int) -> None:
        """Make room for this many rows."""
        if rows > len(self._table):
            wanted = np.zeros((max(rows, len(self._table) * 5 // 4), self._width), np.int64)
            wanted[: len(self._table)] = self._table
            self._table = wanted

    def add(self, pane_ns: int, key: NDArray[np.integer], value: NDArray[np.int64]) -> None:
        """Add one entry a key to a pane; the keys are distinct and their rows exist."""
        self._table.reshape(-1)[key] += value
        self._sparse.add(pane_ns, key, value)

    def remove(self, pane_ns: int) -> None:
        """Take a pane back; one that added nothing is nothing to take."""
        flat = self._table.reshape(-1)
        for chunk in self._sparse.remove(pane_ns):
            flat[chunk.key] -= chunk.value

    @contextmanager
    def without(self, panes: Iterable[int]) -> Iterator[None]:
        """Leave these panes out of `table` for a while; nothing may be added meanwhile."""
        chunks = list(self._sparse.of(panes))
        flat = self._table.reshape(-1)
        for chunk in chunks:
            flat[chunk.key] -= chunk.value
        try:
            yield
        finally:
            for chunk in chunks:
                flat[chunk.key] += chunk.value


@contextmanager
def left_out(panes: dict[int, T], out: Iterable[int]) -> Iterator[dict[int, T]]:
    """Take panes out of `panes` for a while; yields them."""
    taken = {at: panes.pop(at) for at in list(out)}
    try:
        yield taken
    finally:
        panes.update(taken)


def _narrow(key: NDArray[np.integer], value: NDArray[np.int64]) -> Sparse:
    """Keep values in as few bytes as they need; most counts of a pane fit in one."""
    largest = int(value.max(initial=0))
    fits = largest < 1 << 32 and int(value.min(initial=0)) >= 0
    width = np.min_scalar_type(largest) if fits else np.dtype(np.int64)
    return Sparse(key.astype(np.int32), value.astype(width))


def _compact(part: _Part) -> None:
    """Add up repeated keys, so that a part stays as long as its distinct keys, or twice that."""
    if len(part.chunks) > 1:
        keys = np.concatenate([chunk.key for chunk in part.chunks]).astype(np.int64)
        values = np.concatenate([chunk.value for chunk in part.chunks]).astype(np.int64)
        at = order(keys, int(keys.max(initial=0)) + 1)
        keys = keys[at]
        starts = run_starts(keys)
        part.chunks = [_narrow(keys[starts], np.add.reduceat(values[at], starts))]
    part.solid = sum(len(chunk.key) for chunk in part.chunks)
    part.loose = 0
