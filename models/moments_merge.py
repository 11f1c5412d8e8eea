"""Add up co-moments: the pairwise update of Chan, Golub and LeVeque, for many parts at once.

For parts of a group with n, mean m and centred product P, the whole has N = sum n,
M = sum n m / N and P + n (m - M)(m' - M)' summed. Sums start from the first part's mean, so that
a group of one part stays as it is to the last digit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import order, run_sizes, run_starts
from tailbudget.schemas.summary import Moments

_Floats = NDArray[np.float64]
_Counts = NDArray[np.int64]

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
    n, mean, product = combine(
        (moments.n[at], moments.mean[at], moments.product[at]), starts, _QUADRATIC
    )
    log_n, log_mean, log_product = combine(
        (moments.log_n[at], moments.log_mean[at], moments.log_product[at]), starts, _LINEAR
    )
    pair_n, pair_mean, pair_product = combine(
        (moments.pair_n[at], moments.pair_mean[at], moments.pair_product[at]), starts, _LINEAR
    )
    return Moments(n, mean, product, log_n, log_mean, log_product, pair_n, pair_mean, pair_product)


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
    between = np.stack([scaled[..., i] * apart[..., j] for i, j in pairs], axis=-1)
    return total, whole, np.add.reduceat(product + between, starts, axis=0)
