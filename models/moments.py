"""Co-moments of covariates and stages, from which any least-squares fit can be had later.

Rows are centred near their group's mean before they are multiplied, and the remainder is corrected
for the rows that a pair has in common (only rows where both are present count), so that nothing is
lost to cancellation. Presence is a 0/1 column beside the deviations; complete columns share one.
All sums that a pair needs are then entries of one matrix product a group.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.blocks import Blocks, blocks_of
from tailbudget.models.order import run_ranges, run_sizes
from tailbudget.schemas.summary import Moments

_ROWS: Final = 16384  # at a time, so that what is in between stays in the cache
_GROUPS: Final = 256  # likewise, where groups are of few rows

_ROUNDING: Final = 1e-13

_Floats = NDArray[np.float64]
_T = TypeVar("_T", np.float64, np.int64)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Values in blocks [k, B, width], with what is needed to leave missing ones out.

    Attributes:
        masks: [m, B, width] distinct presence columns, 1 or 0; the first is all 1.
        mask: [k] the presence column of each column.
        values: finite, where missing too.
        reference: [k, G] something near the mean of each group.
    """

    masks: _Floats
    mask: NDArray[np.intp]
    values: _Floats
    reference: _Floats


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
    x: _Floats,
    y: _Floats,
    starts: NDArray[np.intp],
    weight: NDArray[np.int64] | None,
    stages: NDArray[np.intp],
) -> Moments:
    """Return the moments of rows that stand group by group.

    Args:
        x: [C, n] covariates, NaN where missing; C > 0.
        y: [k, n] stages, NaN where missing.
        starts: [G] first row of each group; no group is empty.
        weight: [n] or None for 1 each.
        stages: [k] index of each stage in the result, the first 0 and the last S - 1.
    """
    n = x.shape[1]
    pieces = []
    for low, high in run_ranges(starts, n, _ROWS, _GROUPS):
        first, last = int(starts[low]), int(starts[high]) if high < len(starts) else n
        blocks = blocks_of(
            starts[low:high] - first, last - first, None if weight is None else weight[first:last]
        )
        pieces.append(_moments(blocks, x[:, first:last], y[:, first:last], stages))
    if len(pieces) == 1:
        return pieces[0]
    names = [field.name for field in fields(Moments)]
    return Moments(*(np.concatenate([getattr(p, name) for p in pieces]) for name in names))


def _moments(blocks: Blocks, x: _Floats, y: _Floats, stages: NDArray[np.intp]) -> Moments:
    k, wide = len(x), int(stages[-1]) + 1
    right = _columns(blocks, np.concatenate([y, x]))
    left, logs = _last(right, k), _logarithms(right)
    squares = replace(
        left, values=left.values * left.values, reference=left.reference * left.reference
    )
    # The covariates stand behind the stages: the same product has their pairs with each other.
    at = np.append(stages, wide + np.arange(k))
    n, mean, product = _pairs(blocks, [left, squares], right, at)
    log_n, log_mean, log_product = _pairs(blocks, [_last(logs, k)], logs, at)
    return Moments(
        n=n[:, :, :wide],
        mean=mean[:, :, :wide],
        product=product[:, :, :wide],
        log_n=log_n[:, :, :wide],
        log_mean=log_mean[:, :, :wide],
        log_product=log_product[:, :, :wide],
        pair_n=n[:, :, wide:],
        pair_mean=mean[:, :, wide:, [0, 2]],
        pair_product=product[:, :, wide:, [0, 3, 5]],
    )


def _last(columns: _Columns, k: int) -> _Columns:
    """Return the last k columns, with the presence columns that they need."""
    used = np.unique(np.append(0, columns.mask[-k:]))
    mask = np.searchsorted(used, columns.mask[-k:])
    return _Columns(columns.masks[used], mask, columns.values[-k:], columns.reference[-k:])


def _columns(blocks: Blocks, columns: _Floats) -> _Columns:
    partial = np.flatnonzero(np.isnan(columns.sum(axis=1)))
    present = ~np.isnan(columns[partial])
    filled = columns
    if len(partial):
        filled = columns.copy()
        filled[partial] = np.where(present, columns[partial], 0.0)
    sums = np.add.reduceat(filled, blocks.first_rows, axis=1)
    n = np.tile(run_sizes(blocks.first_rows, columns.shape[1]), (len(columns), 1))
    n[partial] = np.add.reduceat(present, blocks.first_rows, axis=1, dtype=np.int64)
    reference = sums / np.maximum(n, 1)
    return _masked(blocks.gather(filled), partial, blocks.gather(present), reference)


def _masked(
    values: _Floats, partial: NDArray[np.intp], present: NDArray[np.generic], reference: _Floats
) -> _Columns:
    mask = np.zeros(len(values), np.intp)
    mask[partial] = np.arange(1, 1 + len(partial))
    masks = np.ones((1 + len(partial), *values.shape[1:]))
    masks[1:] = present
    return _Columns(masks, mask, values, reference)


def _logarithms(columns: _Columns) -> _Columns:
    """Return the logarithms, missing where the value is, or is not positive."""
    positive = columns.values > 0
    reference = np.log(np.maximum(columns.reference, np.finfo(np.float64).tiny))
    if positive.all():
        return replace(columns, values=np.log(columns.values), reference=reference)
    logs = np.where(positive, columns.values, 1.0)
    np.log(logs, out=logs)
    partial = np.flatnonzero((columns.mask > 0) | ~positive.all(axis=(1, 2)))
    present = positive[partial] & (columns.masks[columns.mask[partial]] > 0)
    return _masked(logs, partial, present, reference)


def _deviations(blocks: Blocks, columns: _Columns, out: _Floats) -> None:
    blocks.centre(columns.values, columns.reference, out)
    for column, mask in enumerate(columns.mask.tolist()):
        if mask:
            out[column] *= columns.masks[mask]


def _lefts(blocks: Blocks, variables: list[_Columns]) -> _Floats:
    """Return presence, deviations and their products with each other, all weighted."""
    k, masks = len(variables[0].mask), len(variables[0].masks)
    v = len(variables)
    result = np.empty((masks + k * (v + v * (v + 1) // 2), *blocks.rows.shape))
    result[:masks] = variables[0].masks
    parts = [result[masks + k * i : masks + k * (i + 1)] for i in range(v + v * (v + 1) // 2)]
    for columns, part in zip(variables, parts, strict=False):
        _deviations(blocks, columns, part)
    for part, (i, j) in zip(parts[v:], _among(v), strict=True):
        np.multiply(parts[i], parts[j], out=part)
    result *= blocks.weight
    return result


def _rights(blocks: Blocks, columns: _Columns) -> _Floats:
    """Return presence, deviations and their squares."""
    k, masks = len(columns.mask), len(columns.masks)
    result = np.empty((masks + 2 * k, *blocks.rows.shape))
    result[:masks] = columns.masks
    deviations = result[masks : masks + k]
    _deviations(blocks, columns, deviations)
    np.multiply(deviations, deviations, out=result[masks + k :])
    return result


def _among(variables: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(variables) for j in range(i, variables)]


def _pairs(
    blocks: Blocks, variables: list[_Columns], right: _Columns, at: NDArray[np.intp]
) -> tuple[NDArray[np.int64], _Floats, _Floats]:
    """Return n [G, k, L], means [G, k, L, v + 1] and centred products of left and right columns.

    `variables` are the columns of the left and functions of them (x, x²), present where they are.
    The products are of the variables with each other, with y, and of y with itself. Column j of
    the right stands at at[j] of the result.
    """
    left, v, k, wide = variables[0], len(variables), len(variables[0].mask), len(right.mask)
    by_group = blocks.products(_lefts(blocks, variables), _rights(blocks, right))
    sums = np.ascontiguousarray(by_group.transpose(1, 2, 0))

    def entries(i: int, j: int) -> _Floats:
        rows = sums[left.mask] if not i else sums[len(left.masks) + k * (i - 1) :][:k]
        if not j:
            return rows[:, right.mask]
        return rows[:, len(right.masks) + wide * (j - 1) :][:, :wide]

    n, y_sum, y_square = (entries(0, j) for j in range(3))
    inverse = 1.0 / np.maximum(n, 1.0)
    x_sums = [entries(1 + i, 0) for i in range(v)]
    x_means = [x_sum * inverse for x_sum in x_sums]
    references = [*(x.reference[:, None] for x in variables), right.reference[None]]
    present = n > 0
    means = [
        (reference + shift) * present
        for reference, shift in zip(references, [*x_means, y_sum * inverse], strict=True)
    ]
    products = [
        _less(entries(1 + v + p, 0), x_sums[i] * x_means[j]) for p, (i, j) in enumerate(_among(v))
    ]
    products += [entries(1 + i, 1) - x_means[i] * y_sum for i in range(v)]
    products.append(_less(y_square, y_sum * y_sum * inverse))
    counts = _placed([np.rint(n).astype(np.int64)], at)[..., 0]
    return counts, _placed(means, at), _placed(products, at)


def _less(squares: _Floats, share: _Floats) -> _Floats:
    """Return squares - share, or 0 where so little is left that it is rounding error."""
    left = squares - share
    left[np.abs(left) <= _ROUNDING * np.abs(squares)] = 0.0
    return left


def _placed(parts: list[NDArray[_T]], at: NDArray[np.intp]) -> NDArray[_T]:
    """Turn parts [k, l, G] into [G, k, L, parts], column j at at[j], zeros between."""
    k, _, groups = parts[0].shape
    result = np.zeros((len(parts), k, int(at[-1]) + 1, groups), parts[0].dtype)
    for part, place in zip(parts, result, strict=True):
        place[:, at] = part
    return result.transpose(3, 1, 2, 0)
