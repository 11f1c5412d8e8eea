"""The calibrated score of one key, with river's interface of an anomaly detector."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from river import base

from tailbudget.models.anomaly.calibration import Calibration, stratum_of
from tailbudget.models.anomaly.coverage import SEEN
from tailbudget.models.anomaly.normal import cdf
from tailbudget.models.shape.one_key import OneKey, one_row

_REFRESH_ROWS: Final = 20


class ShapeDetector(base.SupervisedAnomalyDetector):
    """How unusual a latency is, given the shape of the request.

    The score is the share of this key's own residuals that were lower: 0.5 is usual, 1 is slower
    than anything seen. It is None while the model learns, for a row that lacks a feature, and for
    a shape that was hardly ever seen. `Guard` accumulates such scores over time.

    Examples:
        >>> from tailbudget.models.anomaly.detector import ShapeDetector
        >>> detector = ShapeDetector()
        >>> for i in range(600):
        ...     tokens = 100 + i % 40 * 10
        ...     detector.learn_one({"tokens": tokens}, (5 + 0.1 * tokens) * (1 + 0.01 * (i % 7)))
        >>> detector.score_one({"tokens": 200}, 40) > 0.99
        True
        >>> detector.score_one({"tokens": 500}, 55) < 0.9
        True
    """

    def __init__(self) -> None:
        self._one = OneKey()
        self._calibration = Calibration()
        self._calibration.grow(1)
        self._fresh = 0

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn one row."""
        learnt = self._one.learn(one_row(x, y))
        log = np.log(learnt.ms / learnt.expected_ms)
        self._calibration.learn(learnt.key, stratum_of(learnt.slots[:, 5]), log)
        self._fresh += len(log)
        if self._fresh >= _REFRESH_ROWS:
            self._calibration.refresh(np.zeros(1, np.int64))
            self._fresh = 0

    def score_one(self, x: dict[Any, Any], y: float) -> float | None:
        """Return the score of one row, None if nothing can be said."""
        row = one_row(x, y)
        expected, slots = self._one.predict(row)
        if not np.isfinite(expected[0]) or not np.isfinite(y) or y <= 0:
            return None
        if self._one.shapes.bank.seen(row.key, slots).min() < SEEN:
            return None
        log = np.log(row.ms / expected)
        score = self._calibration.score(row.key, stratum_of(slots[:, 5]), log)
        return float(cdf(score)[0])
