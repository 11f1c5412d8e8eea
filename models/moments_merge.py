"""Add up co-moments: the pairwise update of Chan, Golub and LeVeque, for many parts at once.

For parts of a group with n, mean m and centred product P, the whole has N = sum n,
M = sum n m / N and P + n (m - M)(m' - M)' summed. Sums start from the first part's mean, so that
a group of one part stays as it is to the last digit.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import order, run_ranges, run_sizes, run_starts
from tailbudget.schemas.summary import Moments

_Floats = NDArray[np.float64]
_Counts = NDArray[np.int64]

_GROUPS: Final = 256  # at a time, so that what is in between stays in the cache

# Which two variables each product is of.
_QUADRATIC = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_LINEAR = ((0, 0), (0, 1), (1, 1))


def regroup_moments(moments: Moments, group: NDArray[np.int64], groups: int) -> Moments:
    """Move every group to the number given for it, and add up those that fall together.

    Args:
        moments: of any number of groups.
        group: the new number of each; every number below `groups` occurs.
        groups: how many there are then.
    """
    if not len(group):
        return moments
    at = order(group, groups)
    starts = run_starts(group[at])
    if len(starts) == len(group):
        return take_moments(moments, at)
    pieces = []
    for low, high in run_ranges(starts, len(group), _GROUPS):
        first, last = starts[low], starts[high] if high < len(starts) else len(group)
        piece = take_moments(moments, at[first:last])
        pieces.append(_combined(piece, starts[low:high] - first))
    names = [field.name for field in fields(Moments)]
    return Moments(*(np.concatenate([getattr(p, name) for p in pieces]) for name in names))


def _combined(m: Moments, starts: NDArray[np.intp]) -> Moments:
    return Moments(
        *combine((m.n, m.mean, m.product), starts, _QUADRATIC),
        *combine((m.log_n, m.log_mean, m.log_product), starts, _LINEAR),
        *combine((m.pair_n, m.pair_mean, m.pair_product), starts, _LINEAR),
    )


def take_moments(moments: Moments, at: NDArray[np.intp]) -> Moments:
    """Return the moments of the groups at these indices."""
    return Moments(
        moments.n[at], moments.mean[at], moments.product[at],
        moments.log_n[at], moments.log_mean[at], moments.log_product[at],
        moments.pair_n[at], moments.pair_mean[at], moments.pair_product[at],
    )  # fmt: skip


def combine(
    parts: tuple[_Counts, _Floats, _Floats],
    starts: NDArray[np.intp],
    pairs: tuple[tuple[int, int], ...],
) -> tuple[_Counts, _Floats, _Floats]:
    """Add up n [P, ...], mean [P, ..., v] and product [P, ..., p] over runs of the first axis."""
    n, mean, product = parts
    sizes = run_sizes(starts, len(n))
    total = np.add.reduceat(n, starts, axis=0)
    weight = n[..., None].astype(np.float64)
    base = mean[starts]
    shift = mean - np.repeat(base, sizes, axis=0)
    share = np.maximum(total, 1)[..., None]
    whole = base + np.add.reduceat(shift * weight, starts, axis=0) / share
    apart = mean - np.repeat(whole, sizes, axis=0)
    scaled = apart * weight
    between = product.copy()
    for p, (i, j) in enumerate(pairs):
        between[..., p] += scaled[..., i] * apart[..., j]
    return total, whole, np.add.reduceat(between, starts, axis=0)
