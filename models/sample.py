"""Choose whole records to keep: a uniform sample and the slowest of each group.

The sample of a group has the smallest hashes of the group (bottom-k), and those of its hashes
that are among the smallest of the whole pane: few cohorts are sampled well,
and many are each sampled a little. `tau` is the next hash, or the largest possible one while all
records are kept, so every record below tau is in the sample. One hash is one record: among several
the slowest stands, which makes the choice the same for any order and any split of the records.

A part of the records has larger thresholds than the whole. So whatever is below the thresholds of
the whole is still there when parts are merged, and they come out the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import order, run_sizes, run_starts
from tailbudget.schemas.summary import Sample

SLOWEST: Final = 2
NO_LIMIT: Final = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Keep:
    """How many records to keep beside the slowest; more stay where two thresholds meet.

    Attributes:
        group: of each group.
        pane: of each pane, whatever their group.
    """

    group: int
    pane: int


KEEP: Final = Keep(group=16, pane=256)
"""What panes keep: 256 are enough for the p95 of ten seconds, at some 100 bytes a record."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Records to choose from.

    Attributes:
        groups: how many groups there are.
        pane: [groups] number of the pane that each group is of.
        group: [n] which group each is in, ascending.
        hash: [n] hash of the request id.
        total_ms: [n] latency.
        ties: further columns [n] that tell records of one hash and latency apart.
    """

    groups: int
    pane: NDArray[np.int64]
    group: NDArray[np.int64]
    hash: NDArray[np.uint64]
    total_ms: NDArray[np.float64]
    ties: tuple[NDArray[np.generic], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is kept, sorted by (group, hash).

    Attributes:
        at: [M] which rows.
        slowest: [M] kept as one of the slowest.
        tau: [groups] hash threshold.
    """

    at: NDArray[np.intp]
    slowest: NDArray[np.bool_]
    tau: NDArray[np.uint64]


def fair(sample: Sample) -> NDArray[np.intp]:
    """Return which records are of the uniform sample; the slowest, kept besides, would bias it."""
    tau = sample.tau[sample.group]
    # A group whose records are all kept has the largest hash as its limit, that one included.
    return np.flatnonzero((sample.hash < tau) | (tau == NO_LIMIT))


def choose(rows: Rows, tau: NDArray[np.uint64], keep: Keep) -> Choice:
    """Choose the sample and the slowest of each group.

    Args:
        rows: records to choose from.
        tau: [groups] threshold below which the rows are complete.
        keep: how many to keep.
    """
    tau = np.minimum(_thresholds(rows, tau, keep), tau)
    low = np.flatnonzero(rows.hash < tau[rows.group])
    slowest = np.zeros(len(rows.group), np.bool_)
    slowest[_slow(rows)] = True
    kept = slowest.copy()
    kept[low] = True
    at = _ranked(rows, np.flatnonzero(kept))
    starts = pair_starts(rows.group[at], rows.hash[at])
    flags = np.logical_or.reduceat(slowest[at], starts) if len(at) else slowest[:0]
    return Choice(at[starts], flags, tau)


def _thresholds(rows: Rows, tau: NDArray[np.uint64], keep: Keep) -> NDArray[np.uint64]:
    """Return the hash below which each group keeps records."""
    hashes, group = rows.hash, rows.group
    if (tau != NO_LIMIT).any():  # the slowest are kept beyond it, and are no part of the sample
        complete = hashes < tau[group]
        hashes, group = hashes[complete], group[complete]
    by_group = _next_hash(hashes, group, rows.groups, keep.group)
    panes = int(rows.pane[-1]) + 1 if rows.groups else 0
    by_pane = _next_hash(hashes, rows.pane[group], panes, keep.pane)
    return np.maximum(by_group, by_pane[rows.pane])


def _next_hash(
    hashes: NDArray[np.uint64], of: NDArray[np.int64], count: int, size: int
) -> NDArray[np.uint64]:
    """Return [count] the hash after the `size` smallest of each set, the largest if there is none.

    Args:
        hashes: [n] hashes.
        of: [n] the set that each is in.
        count: how many sets there are.
        size: of how many the next one is wanted.
    """
    n = np.bincount(of, minlength=count)
    wanted = size + 1
    # Of n uniform hashes about `wanted` + 5 standard deviations lie below this limit.
    share = np.minimum((wanted + 5 * wanted**0.5) / np.maximum(n, 1), 1.0)
    limit = np.minimum((share * 2.0**63).astype(np.uint64) * np.uint64(2), NO_LIMIT)
    limit[share >= 1.0] = NO_LIMIT
    found = _ranked_hash(hashes, of, limit, size)
    short = (found == NO_LIMIT) & (limit < NO_LIMIT)
    if short.any():
        limit[short] = NO_LIMIT
        found = _ranked_hash(hashes, of, limit, size)
    return found


def _ranked_hash(
    hashes: NDArray[np.uint64], of: NDArray[np.int64], limit: NDArray[np.uint64], rank: int
) -> NDArray[np.uint64]:
    """Return the distinct hash of a rank (0 is the smallest) below each set's limit."""
    at = np.flatnonzero(hashes < limit[of])
    at = at[np.argsort(hashes[at])]
    at = at[order(of[at], len(limit))]
    starts = pair_starts(of[at], hashes[at])
    distinct = of[at[starts]]
    first = np.searchsorted(distinct, np.arange(len(limit)))
    wanted = np.flatnonzero(np.arange(len(starts)) - first[distinct] == rank)
    found = np.full(len(limit), NO_LIMIT)
    found[distinct[wanted]] = hashes[at[starts[wanted]]]
    return found


def _slow(rows: Rows) -> NDArray[np.intp]:
    """Return the rows of the slowest hashes of each group; the smaller hash wins a tie."""
    starts = run_starts(rows.group)
    if not len(starts):
        return np.zeros(0, np.intp)
    sizes = run_sizes(starts, len(rows.group))
    total = rows.total_ms.copy()
    found = []
    for _ in range(SLOWEST):
        most = np.maximum.reduceat(total, starts)
        most[most == -np.inf] = np.nan  # equal to nothing
        at = np.flatnonzero(total == np.repeat(most, sizes))
        at = at[np.argsort(rows.hash[at])]
        at = at[order(rows.group[at], rows.groups)]
        first = at[run_starts(rows.group[at])]
        winner = np.zeros(rows.groups, np.uint64)
        winner[rows.group[first]] = rows.hash[first]
        found.append(at[rows.hash[at] == winner[rows.group[at]]])
        total[rows.hash == winner[rows.group]] = -np.inf
    return np.concatenate(found)


def _ranked(rows: Rows, at: NDArray[np.intp]) -> NDArray[np.intp]:
    """Order rows by group and hash; of one hash the slowest first, then by the other columns."""
    ranked = at[np.argsort(rows.hash[at])]
    ranked = ranked[order(rows.group[ranked], rows.groups)]
    if len(pair_starts(rows.group[ranked], rows.hash[ranked])) == len(at):
        return ranked
    ties = tuple(column[at] for column in reversed(rows.ties))
    return at[np.lexsort((*ties, -rows.total_ms[at], rows.hash[at], rows.group[at]))]


def pair_starts(first: NDArray[np.generic], second: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return where each run of equal pairs begins."""
    if not len(first):
        return np.zeros(0, np.intp)
    begins = np.ones(len(first), np.bool_)
    begins[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return np.flatnonzero(begins)
