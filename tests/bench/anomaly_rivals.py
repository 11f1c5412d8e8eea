"""What others would watch a stage with; each sees the mean of a key's rows once a second.

Their limits are those of their authors or the usual ones, not tuned. Those that need residuals
get those of our shape model, which is more than they have by themselves.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from river import anomaly, drift

_LEARN: Final = 150
_HOLD: Final = 60
"""A drift detector reports moments; an alarm is taken to last so many seconds after one."""


@dataclass(frozen=True, slots=True)
class Second:
    """One key's rows of one second.

    Attributes:
        ms: mean time.
        ratio: mean of measured by expected time; 1 while the shape model learns.
        covariates: their means.
    """

    ms: float
    ratio: float
    covariates: dict[str, float]


class Rival(Protocol):
    """Watches one key."""

    def alarmed(self, second: Second) -> bool:
        """Say whether the key is slower than it should be, and learn from the second."""


class StaticThreshold:
    """More than 1.5 times the median of what was learnt first."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self._limit = math.inf

    def alarmed(self, second: Second) -> bool:
        """Say whether the mean is beyond the limit."""
        if len(self._first) < _LEARN:
            self._first.append(second.ms)
            return False
        if math.isinf(self._limit):
            self._limit = 1.5 * float(np.median(self._first))
        return second.ms > self._limit


class ZScore:
    """More than 3 standard deviations above the mean of the last five minutes."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=300)

    def alarmed(self, second: Second) -> bool:
        """Say whether the mean is beyond the limit."""
        known = np.array(self._last)
        high = len(known) >= _LEARN and second.ms > known.mean() + 3 * known.std()
        self._last.append(second.ms)
        return bool(high)


class PaperRule:
    """E = max(0, 1 - expected/measured), averaged over 10, beyond min(mean + 3 sd, 0.5)."""

    def __init__(self) -> None:
        self._first: list[float] = []
        self._last: deque[float] = deque(maxlen=10)

    def alarmed(self, second: Second) -> bool:
        """Say whether the averaged error is beyond the limit."""
        error = max(0.0, 1 - 1 / second.ratio)
        if len(self._first) < _LEARN:
            self._first.append(error)
            return False
        self._last.append(error)
        limit = min(float(np.mean(self._first) + 3 * np.std(self._first)), 0.5)
        return float(np.mean(self._last)) > limit


class HalfSpaceTrees:
    """River's trees on the mean and the covariates, beyond the 99 % quantile of their scores."""

    def __init__(self) -> None:
        self._trees = anomaly.QuantileFilter(
            anomaly.HalfSpaceTrees(n_trees=10, height=6, window_size=100, seed=1), q=0.99
        )

    def alarmed(self, second: Second) -> bool:
        """Say whether the second is unusual."""
        x = {"ms": _squashed(second.ms)}
        x |= {name: _squashed(value) for name, value in second.covariates.items()}
        unusual = bool(self._trees.classify(self._trees.score_one(x)))
        self._trees.learn_one(x)
        return unusual


class Gaussian:
    """River's GaussianScorer behind a ThresholdFilter, on the mean, one-sided."""

    def __init__(self) -> None:
        scorer = anomaly.GaussianScorer(window_size=300, grace_period=_LEARN)
        self._filter = anomaly.ThresholdFilter(scorer, threshold=0.997)
        self._last: deque[float] = deque(maxlen=300)

    def alarmed(self, second: Second) -> bool:
        """Say whether the mean is unusually high."""
        unusual = bool(self._filter.classify(self._filter.score_one(None, second.ms)))
        high = unusual and second.ms > float(np.mean(self._last))
        self._filter.learn_one(None, second.ms)
        self._last.append(second.ms)
        return high


class Drift:
    """A drift detector of river on the logarithm of the residual ratio."""

    def __init__(self, detector: drift.ADWIN | drift.PageHinkley) -> None:
        self._detector = detector
        self._mean = 0.0
        self._left = 0

    def alarmed(self, second: Second) -> bool:
        """Say whether the residual went up lately."""
        value = math.log(second.ratio)
        self._detector.update(value)
        self._left = max(self._left - 1, 0)
        if self._detector.drift_detected:
            self._left = _HOLD if value > self._mean else 0
        self._mean += 0.01 * (value - self._mean)
        return self._left > 0


def _squashed(value: float) -> float:
    return math.log1p(max(value, 0.0)) / 12


RIVALS: Final[dict[str, Callable[[], Rival]]] = {
    "static threshold": StaticThreshold,
    "z-score": ZScore,
    "the paper's rule, our model": PaperRule,
    "river HalfSpaceTrees": HalfSpaceTrees,
    "river GaussianScorer": Gaussian,
    "our model, river ADWIN": lambda: Drift(drift.ADWIN()),
    "our model, river PageHinkley": lambda: Drift(
        drift.PageHinkley(min_instances=30, delta=0.02, threshold=1.0, mode="up")
    ),
}
