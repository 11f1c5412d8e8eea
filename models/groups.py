"""Number the groups of a summary: the distinct (pane, cohort) pairs, in their binding order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import Cohort, cohort_text

_text = lru_cache(maxsize=1 << 15)(cohort_text)

_DENSE = 1 << 16  # a table of this many possible numbers is cheaper than a sort of the values


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups sorted by (pane, cohort text), and which one each row is in.

    Attributes:
        of: [n] group of each row.
        pane_ns: [G] start of the pane.
        cohorts: [G] cohort.
    """

    of: NDArray[np.int64]
    pane_ns: NDArray[np.int64]
    cohorts: tuple[Cohort, ...]

    def __len__(self) -> int:
        return len(self.pane_ns)


def number_groups(
    pane_ns: NDArray[np.int64], cohort: NDArray[np.integer], cohorts: Sequence[Cohort]
) -> Groups:
    """Group rows by pane start and cohort.

    Args:
        pane_ns: [n] start of each row's pane.
        cohort: [n] index into `cohorts`.
        cohorts: distinct cohorts in any order.
    """
    sequence = sorted(range(len(cohorts)), key=lambda c: _text(cohorts[c]))
    rank = np.empty(len(cohorts), np.int64)
    rank[sequence] = np.arange(len(cohorts))
    panes, pane = compact(pane_ns)
    width = max(len(cohorts), 1)
    pairs, of = compact(pane * width + rank[cohort])
    names = tuple(cohorts[sequence[c]] for c in (pairs % width).tolist())
    return Groups(of, panes[pairs // width], names)


def compact(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct values, ascending, and the index of each value among them."""
    if not len(values):
        return values, np.zeros(0, np.int64)
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > max(_DENSE, 2 * len(values)):
        distinct, of = np.unique(values, return_inverse=True)
        return distinct, of.astype(np.int64)
    offsets = values - low
    seen = np.zeros(span, np.bool_)
    seen[offsets] = True
    found = np.flatnonzero(seen)
    number = np.zeros(span, np.int64)
    number[found] = np.arange(len(found))
    return found + low, number[offsets]
