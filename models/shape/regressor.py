"""The shape model of one key, with river's interface of a mini-batch regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from river import base

from tailbudget.models.shape.one_key import OneKey, many_rows, one_row


class ShapeRegressor(base.MiniBatchRegressor):
    """Latency by work, load and waiting: non-negative, robust, with forgetting.

    The names of the features say which part each plays, see `roles`; features that are no numbers
    are left out. Until 200 rows were learnt, and for a row that lacks a feature, the prediction is
    None, in `predict_many` NaN. Times that are not positive are not learnt. Nothing is forgotten
    by itself, for no time is given: `ServiceShapes` takes it.

    Examples:
        >>> from tailbudget.models.shape.regressor import ShapeRegressor
        >>> model = ShapeRegressor()
        >>> for i in range(400):
        ...     tokens = 100 + i % 40 * 10
        ...     model.learn_one({"input_tokens": tokens}, 5 + 0.1 * tokens)
        >>> round(model.predict_one({"input_tokens": 200}))
        25
    """

    def __init__(self) -> None:
        self._one = OneKey()

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn one row."""
        self._one.learn(one_row(x, y))

    def predict_one(self, x: dict[Any, Any]) -> float | None:
        """Return the expected time of one row, None if that is not known."""
        expected = float(self._one.predict(one_row(x))[0][0])
        return expected if np.isfinite(expected) else None

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:  # noqa: N803 - river's name
        """Learn many rows."""
        ms = np.asarray(y, np.float64)
        self._one.learn(many_rows(*_matrix(X), ms))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:  # noqa: N803 - river's name
        """Return the expected times, NaN where not known (all None before anything is known)."""
        if not self._one.ready:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        expected, _ = self._one.predict(many_rows(*_matrix(X)))
        return pd.Series(expected, index=X.index)


def _matrix(table: pd.DataFrame) -> tuple[tuple[str, ...], Any]:
    numbers = table.select_dtypes(["number", "bool"])
    return tuple(str(name) for name in numbers.columns), numbers.to_numpy(np.float64)
