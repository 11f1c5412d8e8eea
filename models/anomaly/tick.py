"""What one tick says of every key: sums over its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TAIL_POINTS: Final = (1.645, 2.326)
"""Normal scores that 5 % and 1 % of sound rows exceed."""
TAIL_SHARES: Final = (0.05, 0.01)
FAR_POINTS: Final = (2.0, 3.0)
"""Robust standard deviations above the median residual: there the share of sound rows is measured.
A slow mode, such as that of cache misses, lies beyond, so that its share is what is counted."""
POINTS: Final = len(TAIL_POINTS) + len(FAR_POINTS)


@dataclass(frozen=True, slots=True)
class Scored:
    """Scored rows of one tick.

    Attributes:
        key: [N].
        score: [N] normal scores.
        distance: [N] from the median residual, in robust standard deviations.
        size: [N] standardised logarithm of the main work covariate.
        relative: [N, D] terms divided by the prediction.
        novelty: [N] 0 where much was seen at such a shape, up to 1 where nothing was.
    """

    key: Integers
    score: Floats
    distance: Floats
    size: Floats
    relative: Floats
    novelty: Floats


@dataclass(frozen=True, slots=True)
class Tick:
    """Sums over the rows of one tick, by key.

    Attributes:
        rows: [K] scored rows.
        mean: [K] mean score, 0 without rows.
        exceed: [K, 4] rows beyond each of `TAIL_POINTS`, then of `FAR_POINTS`.
        size: [K] sum of how far rows are above the usual size.
        size_score: [K] sum of that times the score.
        size_square: [K] sum of its square.
        relative: [K, D] mean of the terms divided by the prediction.
        novelty: [K] mean novelty.
    """

    rows: Floats
    mean: Floats
    exceed: Floats
    size: Floats
    size_score: Floats
    size_square: Floats
    relative: Floats
    novelty: Floats


_LARGE: Final = 0.7  # of a standard deviation above the mean size: rows that a slope would slow


def tick_of(scored: Scored, keys: int) -> Tick:
    """Sum up the scored rows of a tick over `keys` keys."""
    key, score = scored.key, scored.score
    rows = np.bincount(key, minlength=keys).astype(np.float64)
    each = np.maximum(rows, 1.0)
    above = np.maximum(np.minimum(scored.size, 3.0) - _LARGE, 0.0)
    beyond = [score > point for point in TAIL_POINTS]
    beyond += [scored.distance > point for point in FAR_POINTS]
    relative = np.zeros((keys, scored.relative.shape[1]))
    order = np.argsort(key, kind="stable")
    present = np.flatnonzero(rows)
    if len(present):
        first = np.concatenate([[0], np.cumsum(rows[present])[:-1]]).astype(np.int64)
        relative[present] = np.add.reduceat(scored.relative[order], first, axis=0)
    return Tick(
        rows=rows,
        mean=np.bincount(key, score, keys) / each,
        exceed=np.stack([np.bincount(key, row, keys) for row in beyond], axis=1),
        size=_sum(key, above, keys),
        size_score=_sum(key, above * score, keys),
        size_square=_sum(key, above * above, keys),
        relative=relative / each[:, None],
        novelty=np.bincount(key, scored.novelty, keys) / each,
    )


def _sum(key: Integers, values: Floats, keys: int) -> Floats:
    # Without rows numpy counts in integers.
    return np.bincount(key, values, keys).astype(np.float64, copy=False)
