"""Co-moments of covariates and stages, from which any least-squares fit can be had later.

Rows are centred on their group's mean before they are multiplied, and the remainder is corrected
for the rows that a pair has in common (only rows where both are present count), so that nothing is
lost to cancellation. Presence is a 0/1 vector; complete columns share one, which keeps the usual
case, nothing missing, at one product for a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.summary import Moments

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Side:
    """Columns of one side of the pairs, centred on the means of their groups.

    Attributes:
        masks: [m, n] distinct presence vectors, 1 or 0.
        mask: [k] the presence vector of each column.
        reference: [k, g] what was subtracted.
        deviation: [k, n] value minus reference, 0 where missing.
    """

    masks: _Floats
    mask: NDArray[np.intp]
    reference: _Floats
    deviation: _Floats


def empty_moments(groups: int, covariates: int, stages: int) -> Moments:
    """Return the moments of no request."""
    pairs = (groups, covariates, stages)
    square = (groups, covariates, covariates)
    return Moments(
        n=np.zeros(pairs, np.int64),
        mean=np.zeros((*pairs, 3)),
        product=np.zeros((*pairs, 6)),
        log_n=np.zeros(pairs, np.int64),
        log_mean=np.zeros((*pairs, 2)),
        log_product=np.zeros((*pairs, 3)),
        pair_n=np.zeros(square, np.int64),
        pair_mean=np.zeros((*square, 2)),
        pair_product=np.zeros((*square, 3)),
    )


def moments_of_rows(
    x: _Floats, y: _Floats, starts: NDArray[np.intp], weight: _Floats | None
) -> Moments:
    """Return the moments of rows that stand group by group.

    Args:
        x: [C, n] covariates, NaN where missing; C > 0.
        y: [S, n] stages, NaN where missing.
        starts: [G] first row of each group; no group is empty.
        weight: [n] or None for 1 each.
    """
    left, right = _side(x, starts, weight), _side(y, starts, weight)
    squares = _squares(x, left, starts, weight)
    n, mean, product = _pairs(left, right, starts, weight, squares)
    log_n, log_mean, log_product = _pairs(
        _side(_log(x), starts, weight), _side(_log(y), starts, weight), starts, weight
    )
    pair_n, pair_mean, pair_product = _pairs(left, left, starts, weight)
    return Moments(
        np.rint(n).astype(np.int64), mean, product,
        np.rint(log_n).astype(np.int64), log_mean, log_product,
        np.rint(pair_n).astype(np.int64), pair_mean, pair_product,
    )  # fmt: skip


def _log(values: _Floats) -> _Floats:
    positive = values > 0
    if positive.all():
        return np.log(values)
    return np.where(positive, np.log(np.where(positive, values, 1.0)), np.nan)


def _side(values: _Floats, starts: NDArray[np.intp], weight: _Floats | None) -> _Side:
    """Centre columns [k, n] on the weighted means of their groups."""
    present = ~np.isnan(values)
    complete = present.all(axis=1)
    partial = np.flatnonzero(~complete)
    masks = np.ones((1 + len(partial), values.shape[1]))
    masks[1:] = present[partial]
    mask = np.zeros(len(values), np.intp)
    mask[partial] = np.arange(1, 1 + len(partial))
    filled = values if complete.all() else np.where(present, values, 0.0)
    reference = _means(filled, masks, mask, starts, weight)
    deviation = filled - _spread(reference, starts, values.shape[1])
    deviation[partial] *= masks[1:]
    return _Side(masks, mask, reference, deviation)


def _squares(x: _Floats, left: _Side, starts: NDArray[np.intp], weight: _Floats | None) -> _Side:
    """Return the side of x², which is present where x is."""
    filled = np.where(np.isnan(x), 0.0, x) if len(left.masks) > 1 else x
    squares = filled * filled
    reference = _means(squares, left.masks, left.mask, starts, weight)
    deviation = squares - _spread(reference, starts, x.shape[1])
    if len(left.masks) > 1:
        deviation *= left.masks[left.mask]
    return _Side(left.masks, left.mask, reference, deviation)


def _means(
    filled: _Floats,
    masks: _Floats,
    mask: NDArray[np.intp],
    starts: NDArray[np.intp],
    weight: _Floats | None,
) -> _Floats:
    sums = np.add.reduceat(filled if weight is None else filled * weight, starts, axis=1)
    n = np.add.reduceat(masks if weight is None else masks * weight, starts, axis=1)
    means: _Floats = sums / np.maximum(n, 1.0)[mask]
    return means


def _spread(per_group: _Floats, starts: NDArray[np.intp], n: int) -> _Floats:
    return np.repeat(per_group, np.diff(starts, append=n), axis=1)


def _pairs(
    left: _Side,
    right: _Side,
    starts: NDArray[np.intp],
    weight: _Floats | None,
    squares: _Side | None = None,
) -> tuple[_Floats, _Floats, _Floats]:
    """Return n [G, k, l], means [G, k, l, 2 or 3] and centred products [G, k, l, 3 or 6].

    The order is x, y and xx, xy, yy; with squares x, x², y and xx, xx², x²x², xy, x²y, yy.
    """
    weighted = left.masks if weight is None else left.masks * weight
    xs = [left] if squares is None else [left, squares]
    deviations = [side.deviation for side in xs]
    scaled = deviations if weight is None else [deviation * weight for deviation in deviations]

    n = _cross(weighted, right.masks, starts)[left.mask][:, right.mask]
    inverse = 1.0 / np.maximum(n, 1.0)
    y_sum = _cross(weighted, right.deviation, starts)[left.mask]
    y_square = _cross(weighted, right.deviation * right.deviation, starts)[left.mask]
    x_sums = [_cross(x, right.masks, starts)[:, right.mask] for x in scaled]

    present = n > 0
    references = [side.reference[:, None, :] for side in xs] + [right.reference[None, :, :]]
    sums = [*x_sums, y_sum]
    means = [
        np.where(present, reference + total * inverse, 0.0)
        for reference, total in zip(references, sums, strict=True)
    ]
    products = []
    for i, first in enumerate(scaled):
        for j in range(i, len(xs)):
            raw = _cross(first * deviations[j], right.masks, starts)[:, right.mask]
            products.append(raw - x_sums[i] * x_sums[j] * inverse)
    products += [
        _cross(x, right.deviation, starts) - x_sum * y_sum * inverse
        for x, x_sum in zip(scaled, x_sums, strict=True)
    ]
    products.append(y_square - y_sum * y_sum * inverse)
    return n.transpose(2, 0, 1), _by_group(means), _by_group(products)


def _cross(left: _Floats, right: _Floats, starts: NDArray[np.intp]) -> _Floats:
    """Return the sums of left[i] * right[j] by group: [len(left), len(right), G]."""
    sums = np.empty((len(left), len(right), len(starts)))
    for row, out in zip(left, sums, strict=True):
        np.add.reduceat(right * row, starts, axis=1, out=out)
    return sums


def _by_group(columns: list[_Floats]) -> _Floats:
    """Turn parts [k, l, G] into [G, k, l, parts]."""
    return np.ascontiguousarray(np.stack(columns).transpose(3, 1, 2, 0))
