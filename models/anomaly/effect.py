"""How large a change is: measured by expected time since the onset, with an interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.per_key import Field, PerKey
from tailbudget.schemas.anomalies import Effect

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MEMORY_ROWS: Final = 2000.0
"""An alarm's effect is that of its last rows, about so many."""
_USUAL_MEMORY: Final = 5000.0
_Z95: Final = 1.96
_MOST_RATIO: Final = 100.0


class Effects(PerKey):
    """Sums of measured by expected time of every key, since it last was quiet.

    Attributes:
        usual: [K] running mean of measured by expected over what was learnt.
        usual_rows: [K] how many rows it is from, bounded.
        rows: [K] rows since the onset.
        ratio: [K] sum of measured by expected.
        square: [K] sum of its square.
        expected: [K] sum of expected milliseconds.
        measured: [K] sum of measured milliseconds.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "usual": ((), 1.0),
        "usual_rows": ((), 0.0),
        "rows": ((), 0.0),
        "ratio": ((), 0.0),
        "square": ((), 0.0),
        "expected": ((), 0.0),
        "measured": ((), 0.0),
    }
    usual: Floats
    usual_rows: Floats
    rows: Floats
    ratio: Floats
    square: Floats
    expected: Floats
    measured: Floats

    def add(self, key: Integers, ms: Floats, expected_ms: Floats, quiet: Mask) -> None:
        """Add scored rows; keys that are quiet [K] start anew with the next tick."""
        ratio = np.minimum(ms / expected_ms, _MOST_RATIO)
        parts = (None, ratio, ratio * ratio, expected_ms, ms)
        sums = (self.rows, self.ratio, self.square, self.expected, self.measured)
        full = self.rows > _MEMORY_ROWS
        for array, part in zip(sums, parts, strict=True):
            array[quiet] = 0.0
            array[full] *= 0.5
            np.add(array, np.bincount(key, part, self.size), out=array)

    def learn(self, key: Integers, ms: Floats, expected_ms: Floats) -> None:
        """Follow what is usual, from rows that are learnt."""
        ratio = np.minimum(ms / expected_ms, _MOST_RATIO)
        count = np.bincount(key, minlength=self.size)
        self.usual_rows = np.minimum(self.usual_rows + count, _USUAL_MEMORY)
        share = np.minimum(count / np.maximum(self.usual_rows, 1.0), 1.0)
        mean = np.bincount(key, ratio, self.size) / np.maximum(count, 1)
        self.usual += share * (mean - self.usual)

    def of(self, keys: Integers, drift: Floats) -> Effect | None:
        """Return the effect over some keys of a stage; None where no rows are.

        Args:
            keys: which.
            drift: [K] standard deviation of the slow jitter, by the expected time.
        """
        rows = self.rows[keys].sum()
        if rows < 1:
            return None
        usual = self.usual[keys]
        each = self.rows[keys] / rows
        mean = float((self.ratio[keys] / usual).sum() / rows)
        square = float((self.square[keys] / usual**2).sum() / rows)
        chance = max(square - mean**2, 0.0) / rows
        wide = _Z95 * float(np.sqrt(chance + (each * drift[keys] ** 2).sum()))
        expected = float((self.expected[keys] * usual).sum() / rows)
        pct, low, high = (100 * (x - 1) for x in (mean, mean - wide, mean + wide))
        return Effect(
            pct=pct,
            low_pct=low,
            high_pct=high,
            ms=expected * pct / 100,
            low_ms=expected * low / 100,
            high_ms=expected * high / 100,
            expected_ms=expected,
            measured_ms=float(self.measured[keys].sum() / rows),
            n=int(rows),
        )
