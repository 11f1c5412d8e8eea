"""From a residual to a normal score, by the key's own history: no distribution is assumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.normal import quantile
from tailbudget.models.per_key import Field, PerKey

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_SCORE: Final = 3.5
"""One row says at most so much, whatever its residual."""
STRATA: Final = 4
"""By requests waiting: none, 1, 2 to 6, 7 and more."""

_LEAST_LOG: Final = -3.0
_WIDTH: Final = 0.02
_BINS: Final = 400
_SHARED_ROWS: Final = 60.0  # all strata together speak as so many rows in each of them
_LEAST_SPREAD: Final = 0.02
_MOST_LOG: Final = 4.0
_SEEN_SHARE: Final = 0.001
_CENTRE: Final = _LEAST_LOG + _WIDTH * (np.arange(_BINS) + 0.5)
_IQR: Final = 1.349  # interquartile range of a normal variable by its standard deviation


class Calibration(PerKey):
    """Histograms of log(measured by predicted), and the scores that they give.

    Attributes:
        histogram: [K, STRATA, BINS] rows, faded.
        spread: [K] robust standard deviation of the residual's logarithm.
        middle: [K] median of the residual's logarithm.
        score_of: [K, STRATA, BINS] the normal score of each bin; not saved, it follows.
        share_below: [K, BINS] share of rows up to each bin; likewise.
        longer_below: [K, BINS] sum of their times by the median's; likewise.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "histogram": ((STRATA, _BINS), 0.0),
        "spread": ((), 0.3),
        "middle": ((), 0.0),
    }
    histogram: Floats
    spread: Floats
    middle: Floats
    score_of: Floats
    share_below: Floats
    longer_below: Floats

    def __init__(self) -> None:
        super().__init__()
        self.score_of = np.zeros((0, STRATA, _BINS))
        self.share_below, self.longer_below = np.zeros((0, _BINS)), np.zeros((0, _BINS))

    def grow(self, size: int) -> None:
        """Add new keys until there are `size`."""
        more = max(size - self.size, 0)
        super().grow(size)
        self.score_of = np.concatenate([self.score_of, np.zeros((more, STRATA, _BINS))])
        new = np.zeros((more, _BINS))
        self.share_below = np.concatenate([self.share_below, new])
        self.longer_below = np.concatenate([self.longer_below, new])

    def score(self, key: Integers, stratum: Integers, log: Floats) -> Floats:
        """Return [N] the normal score of each residual."""
        score: Floats = self.score_of[key, stratum, _bin(log)]
        return score

    def distance(self, key: Integers, log: Floats) -> Floats:
        """Return [N] how many spreads each residual is above the key's median."""
        result: Floats = (log - self.middle[key]) / self.spread[key]
        return result

    def learn(self, key: Integers, stratum: Integers, log: Floats) -> None:
        """Count residuals; their scores follow with `refresh`."""
        np.add.at(self.histogram, (key, stratum, _bin(log)), 1.0)

    def refresh(self, keys: Integers) -> None:
        """Compute scores and spreads of some keys again."""
        if not len(keys):
            return
        counts = self.histogram[keys]
        rows = counts.sum(axis=2)
        shared = counts.sum(axis=1)
        shared /= np.maximum(shared.sum(axis=1, keepdims=True), 1.0)
        mixed = counts + _SHARED_ROWS * shared[:, None, :]
        below = np.cumsum(mixed, axis=2)
        total = np.maximum(below[:, :, -1:], 1e-9)
        # The middle of a bin's probability, kept away from 0 and 1 by half a row.
        score = quantile(
            np.clip((below - mixed / 2) / total, 0.5 / (total + 1), 1 - 0.5 / (total + 1))
        )
        # A histogram of few rows is not trusted to say much.
        trust = np.sqrt(rows / (rows + _SHARED_ROWS / 2))
        clipped = np.clip(score, -LARGEST_SCORE, LARGEST_SCORE)
        self.score_of[keys] = clipped * trust[:, :, None]
        self.share_below[keys] = np.cumsum(shared, axis=1)
        low, middle, high = ((self.share_below[keys] < p).sum(axis=1) for p in (0.25, 0.5, 0.75))
        self.spread[keys] = np.maximum(_LEAST_SPREAD, (high - low) * _WIDTH / _IQR)
        self.middle[keys] = _LEAST_LOG + _WIDTH * (middle + 0.5)
        from_middle = np.minimum(_CENTRE[None, :] - self.middle[keys][:, None], _MOST_LOG)
        self.longer_below[keys] = np.cumsum(shared * np.exp(from_middle), axis=1)

    def excess_beyond(self, distance: Floats) -> Floats:
        """Return [K, P] how many times longer the rows beyond take than the median, less 1."""
        log = self.middle[:, None] + distance * self.spread[:, None]
        at = (np.arange(self.size)[:, None], _bin(log))
        rows = np.maximum(1.0 - self.share_below[at], 1e-9)
        longer = (self.longer_below[:, -1:] - self.longer_below[at]) / rows
        point = np.exp(np.minimum(distance * self.spread[:, None], _MOST_LOG))
        # Where next to nothing was beyond, what comes is taken to lie just there.
        result: Floats = np.where(rows > _SEEN_SHARE, np.maximum(longer, point), point) - 1.0
        return result

    def share_beyond(self, distance: Floats) -> Floats:
        """Return [K, P] the share of learnt rows beyond so many spreads from the median."""
        log = self.middle[:, None] + distance * self.spread[:, None]
        share: Floats = 1.0 - self.share_below[np.arange(self.size)[:, None], _bin(log)]
        return np.maximum(share, 0.0)

    def restore(self, arrays: Mapping[str, NDArray[Any]], size: int) -> None:
        """Take back what `arrays` returned."""
        super().restore(arrays, size)
        kept = (self.spread.copy(), self.middle.copy())
        self.score_of = np.zeros((size, STRATA, _BINS))
        self.share_below, self.longer_below = np.zeros((size, _BINS)), np.zeros((size, _BINS))
        self.refresh(np.arange(size))
        self.spread, self.middle = kept


def stratum_of(waiting: Floats) -> Integers:
    """Return the stratum of each row, by requests waiting before it."""
    doubled = np.log2(1 + np.maximum(waiting, 0.0))
    stratum: Floats = np.minimum(doubled, STRATA - 1)
    return stratum.astype(np.int64)


def _bin(log: Floats) -> Integers:
    bins: Floats = np.clip((log - _LEAST_LOG) / _WIDTH, 0, _BINS - 1)
    return bins.astype(np.int64)
