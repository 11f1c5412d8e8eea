"""What input size is usual of each key, for the test of the slope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.per_key import Field, PerKey

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MEMORY: Final = 500.0
_LEAST: Final = 0.01


class Sizes(PerKey):
    """Running mean and variance of the logarithm of the main work covariate.

    Attributes:
        mean: [K].
        variance: [K].
        rows: [K] bounded.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "mean": ((), 0.0),
        "variance": ((), 1.0),
        "rows": ((), 0.0),
    }
    mean: Floats
    variance: Floats
    rows: Floats

    def standard(self, key: Integers, work: Floats) -> Floats:
        """Return [N] the standardised logarithm of each row's size."""
        result: Floats = (np.log1p(work) - self.mean[key]) / np.sqrt(self.variance[key])
        return result

    def learn(self, key: Integers, work: Floats) -> None:
        """Follow the sizes of rows that are learnt."""
        log = np.log1p(work)
        count = np.bincount(key, minlength=self.size).astype(np.float64)
        each = np.maximum(count, 1.0)
        self.rows = np.minimum(self.rows + count, _MEMORY)
        share = np.minimum(count / np.maximum(self.rows, 1.0), 1.0)
        self.mean += share * (np.bincount(key, log, self.size) / each - self.mean)
        square = np.bincount(key, (log - self.mean[key]) ** 2, self.size) / each
        self.variance = np.maximum(self.variance + share * (square - self.variance), _LEAST)
