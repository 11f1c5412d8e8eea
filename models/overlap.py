"""Which stages run at the same time? Those that together take more time than there is.

Durations alone can't tell when a stage began. The stages are put into groups that run one after
the other, each as long as the longest of its stages in that row; of the groupings that fit into
the total in nearly every row, a search looks for the one that leaves the least time over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.breakdown import SAME, Breakdown, Floats

OVERLAP: Final = 1.05
"""Stages overlap when together they exceed the total by this factor; less is rounding."""

MOST_BRANCHES: Final = 16
"""Stages, the longest, among which groups are looked for; the rest count one after the other."""

_MOST_ROWS: Final = 256  # enough to see what fits in 95 % of them
_GAIN: Final = 1e-3  # of the total: what a further group must explain

Labels = NDArray[np.int64]


def crowded(rows: Breakdown, names: tuple[str, ...]) -> bool:
    """Tell whether these stages, one after the other, take more time than there is."""
    if not len(rows) or len(names) < 2:
        return False
    return not rows.nearly_every(rows.of(names).sum(axis=1) <= OVERLAP * rows.total_ms)


def parallel_groups(rows: Breakdown, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of two or more of these stages that run at the same time."""
    if not crowded(rows, names):
        return ()
    few = _thinned(rows)
    means = dict(zip(names, (few.weight @ few.of(names)).tolist(), strict=True))
    longest = tuple(sorted(names, key=lambda name: (-means[name], name))[:MOST_BRANCHES])
    rest = tuple(name for name in names if name not in longest)
    room = few.total_ms - few.of(rest).sum(axis=1)
    labels = _search(few, few.of(longest), room)
    groups = [
        tuple(sorted(np.array(longest)[labels == label].tolist())) for label in np.unique(labels)
    ]
    return tuple(sorted(group for group in groups if len(group) > 1))


def _thinned(rows: Breakdown) -> Breakdown:
    """Return evenly chosen rows, by latency, so that slow ones keep their part."""
    if len(rows) <= _MOST_ROWS:
        return rows
    order = np.argsort(rows.total_ms, kind="stable")
    at = order[np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(np.intp)]
    return Breakdown(
        names=rows.names,
        ms=rows.ms[at],
        total_ms=rows.total_ms[at],
        weight=rows.weight[at],
        slow=rows.slow[at],
        fast=rows.fast[at],
        requests=rows.requests,
    )


def _search(rows: Breakdown, ms: Floats, room: Floats) -> Labels:
    """Return the group of each column: all in one, then the best move while there is one."""
    labels = np.zeros(ms.shape[1], np.int64)
    enough = _GAIN * float(rows.weight @ rows.total_ms)
    least = float(rows.weight @ np.abs(room - _lengths(ms, labels)))
    while True:
        best = labels
        bound = least - enough
        for moved in _moves(labels):
            over = room - _lengths(ms, moved)
            left = float(rows.weight @ np.abs(over))
            if left < bound and rows.nearly_every(over >= -SAME * rows.total_ms):
                best, bound = moved, left
        if best is labels:
            return labels
        labels, least = best, bound


def _lengths(ms: Floats, labels: Labels) -> Floats:
    """Return [M] how long the groups take one after the other."""
    longest = [ms[:, labels == label].max(axis=1) for label in np.unique(labels)]
    total: Floats = np.sum(longest, axis=0)
    return total


def _moves(labels: Labels) -> Iterator[Labels]:
    """Yield every grouping that differs by one stage, or by two of one group, moved together."""
    groups = np.unique(labels).tolist()
    singles = [(at,) for at in range(len(labels))]
    pairs = [(a, b) for a, b in combinations(range(len(labels)), 2) if labels[a] == labels[b]]
    for chosen in [*singles, *pairs]:
        own = labels[chosen[0]]
        alone = int((labels == own).sum()) == len(chosen)
        for to in [*groups, *([] if alone else [max(groups) + 1])]:
            if to != own:
                moved = labels.copy()
                moved[list(chosen)] = to
                yield moved
