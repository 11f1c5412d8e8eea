"""Cut runs of rows into blocks of one width, so that one batched product serves all groups.

A block holds rows of one group; its last places are filled with a row of the same group and
weight 0. Sums of products over each group then are matrix products of blocks, added up by group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import run_sizes

_WIDTHS: Final = (8, 16, 32)
"""Rows a block: wide enough for the matrix product, narrow enough for groups of few rows."""

_LOOPS: Final = 64

_Floats = NDArray[np.float64]
_T = TypeVar("_T", np.float64, np.bool_)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where the rows of each group went.

    Attributes:
        rows: [B, width] row in each place.
        weight: [B, width] weight of the row there, 0 in filled places.
        starts: [G] first block of each group.
        first_rows: [G] first row of each group.
    """

    rows: NDArray[np.intp]
    weight: _Floats
    starts: NDArray[np.intp]
    first_rows: NDArray[np.intp]

    def gather(self, columns: NDArray[_T]) -> NDArray[_T]:
        """Return columns [k, n] as blocks [k, B, width]."""
        return np.take(columns, self.rows, axis=1)

    def centre(self, blocks: _Floats, reference: _Floats, out: _Floats) -> None:
        """Subtract a reference [k, G] from blocks [k, B, width]."""
        sizes = run_sizes(self.starts, len(self.rows))
        np.subtract(blocks, np.repeat(reference, sizes, axis=1)[:, :, None], out=out)

    def products(self, left: _Floats, right: _Floats) -> _Floats:
        """Sum left[i] * right[j] by group: blocks [k, B, width], [l, B, width] to [G, k, l]."""
        by_block = np.matmul(left.transpose(1, 0, 2), right.transpose(1, 2, 0))
        counts = run_sizes(self.starts, len(by_block))
        most = int(counts.max())
        if most > _LOOPS:
            summed: _Floats = np.add.reduceat(by_block, self.starts, axis=0)
            return summed
        total: _Floats = by_block[self.starts]
        for i in range(1, most):  # several times faster than reduceat while groups are short
            more = np.flatnonzero(counts > i)
            total[more] += by_block[self.starts[more] + i]
        return total


def blocks_of(starts: NDArray[np.intp], n: int, weight: NDArray[np.int64] | None) -> Blocks:
    """Cut n rows, which stand group by group, into blocks.

    Args:
        starts: [G] first row of each group; no group is empty.
        n: how many rows there are.
        weight: [n] or None for 1 each.
    """
    ends = np.append(starts[1:], n)
    mean = n / len(starts)
    width = next((width for width in _WIDTHS if mean <= width), _WIDTHS[-1])
    counts = -(-(ends - starts) // width)
    first = np.cumsum(counts) - counts
    start = np.repeat(starts - first * width, counts) + np.arange(int(counts.sum())) * width
    rows = start[:, None] + np.arange(width)
    last = np.repeat(ends - 1, counts)[:, None]
    filled = rows > last
    np.minimum(rows, last, out=rows)
    weights = np.ones(rows.shape) if weight is None else weight[rows].astype(np.float64)
    weights[filled] = 0.0
    return Blocks(rows, weights, first, starts)
