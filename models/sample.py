"""Choose whole records to keep: a uniform sample and the slowest of each group.

The sample is the `size` smallest hashes of a group (bottom-k); `tau` is the next hash, or the
largest possible one while all records are kept, so every record below tau is in the sample.
One hash is one record: among several the slowest stands, which makes the choice the same for
any order and any split of the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import order, run_sizes, run_starts

SAMPLE_SIZE: Final = 16
SLOWEST: Final = 2
NO_LIMIT: Final = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class Rows:
    """Records to choose from.

    Attributes:
        groups: how many groups there are.
        group: [n] which one each is in, ascending.
        hash: [n] hash of the request id.
        total_ms: [n] latency.
        ties: further columns [n] that tell records of one hash and latency apart.
    """

    groups: int
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


def choose(rows: Rows, tau: NDArray[np.uint64], size: int) -> Choice:
    """Choose the sample and the slowest of each group.

    Args:
        rows: records to choose from.
        tau: [groups] threshold below which the rows are complete.
        size: most records to keep of a group, beside the slowest.
    """
    low, tau = _bottom(rows, tau, size)
    slowest = np.zeros(len(rows.group), np.bool_)
    slowest[_slow(rows)] = True
    kept = slowest.copy()
    kept[low] = True
    at = _ranked(rows, np.flatnonzero(kept))
    starts = pair_starts(rows.group[at], rows.hash[at])
    flags = np.logical_or.reduceat(slowest[at], starts) if len(at) else slowest[:0]
    return Choice(at[starts], flags, tau)


def _bottom(
    rows: Rows, tau: NDArray[np.uint64], size: int
) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """Return the rows (of one hash: all) of the smallest hashes below tau, and the new tau."""
    n = np.bincount(rows.group, minlength=rows.groups)
    wanted = size + 1
    # Of n uniform hashes about `wanted` + 5 standard deviations lie below this limit.
    share = np.minimum((wanted + 5 * wanted**0.5) / np.maximum(n, 1), 1.0)
    limit = np.minimum((share * 2.0**63).astype(np.uint64) * np.uint64(2), NO_LIMIT)
    limit[share >= 1.0] = NO_LIMIT
    kept, next_tau, complete = _below(rows, np.minimum(limit, tau), size)
    short = ~complete & (limit < tau)
    if short.any():
        limit[short] = NO_LIMIT
        kept, next_tau, _ = _below(rows, np.minimum(limit, tau), size)
    return kept, np.minimum(next_tau, tau)


def _below(
    rows: Rows, limit: NDArray[np.uint64], size: int
) -> tuple[NDArray[np.intp], NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the rows of the `size` smallest hashes below the limit, the next hash, and if any."""
    at = np.flatnonzero(rows.hash < limit[rows.group])
    at = at[np.argsort(rows.hash[at])]
    at = at[order(rows.group[at], rows.groups)]
    group = rows.group[at]
    starts = pair_starts(group, rows.hash[at])
    distinct = group[starts]
    first = np.searchsorted(distinct, np.arange(rows.groups))
    rank = np.arange(len(starts)) - first[distinct]
    following = np.flatnonzero(rank == size)
    tau = np.full(rows.groups, NO_LIMIT)
    tau[distinct[following]] = rows.hash[at[starts[following]]]
    complete = np.zeros(rows.groups, np.bool_)
    complete[distinct[following]] = True
    keep = np.repeat(rank < size, run_sizes(starts, len(at)))
    return at[keep], tau, complete


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
