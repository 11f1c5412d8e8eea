"""Non-negative least squares for many keys at once, from their normal equations."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RIDGE: Final = 1e-4
"""On the correlation scale: terms that are copies of each other share what they explain."""
_SAME: Final = 1e-5
_EMPTY: Final = 1e-10  # a term with less evidence than this was always zero


def solve(gram: Floats, moment: Floats, start: Floats, sweeps: int) -> Floats:
    """Return [K, D] coefficients >= 0 that minimise the squared error.

    Projected Gauss-Seidel on the correlation scale, from `start` [K, D]; its fixed point is the
    solution of non-negative least squares.

    Args:
        gram: [K, D, D] sums of products of the terms.
        moment: [K, D] sums of terms times target.
        start: where to begin.
        sweeps: how often every coefficient is improved at most.
    """
    scale, empty = _scaled(gram)
    corr = _correlation(gram, scale, empty)
    target = np.where(empty, 0.0, moment / scale)
    x = np.where(empty, 0.0, start * scale)
    columns = np.flatnonzero(~empty.all(axis=0))
    rows = np.ascontiguousarray(corr.transpose(1, 0, 2))
    for _ in range(sweeps):
        before = x.copy()
        # A term that is zero and would not enter needs no turn in this sweep.
        wanted = (target - np.matmul(corr, x[:, :, None])[:, :, 0] > 0) | (x > 0)
        for j in columns[wanted[:, columns].any(axis=0)].tolist():
            gap = target[:, j] - (rows[j] * x).sum(axis=1)
            x[:, j] = np.maximum(0.0, x[:, j] + gap / (1 + RIDGE))
        if np.abs(x - before).max(initial=0.0) <= _SAME * np.abs(x).max(initial=0.0):
            break
    return np.where(empty, 0.0, x / scale)


def covariance(gram: Floats) -> Floats:
    """Return [K, D, D] the covariance of coefficients for noise of variance 1, 0 if unseen."""
    scale, empty = _scaled(gram)
    inverse = np.linalg.inv(_correlation(gram, scale, empty))
    inverse /= scale[:, :, None]
    inverse /= scale[:, None, :]
    either = empty[:, :, None] | empty[:, None, :]
    return np.where(either, 0.0, inverse)


def _scaled(gram: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    diagonal = np.einsum("kii->ki", gram)
    empty = diagonal < _EMPTY
    return np.sqrt(np.where(empty, 1.0, diagonal)), empty


def _correlation(gram: Floats, scale: Floats, empty: NDArray[np.bool_]) -> Floats:
    corr: Floats = gram / scale[:, :, None]
    corr /= scale[:, None, :]
    corr[empty] = 0.0
    corr.transpose(0, 2, 1)[empty] = 0.0
    index = np.arange(gram.shape[1])
    corr[:, index, index] = 1.0 + RIDGE
    return corr
