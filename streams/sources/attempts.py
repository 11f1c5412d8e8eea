"""Which operation a record is an attempt of."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.streams.sources import fields

_SEED: Final = 0x0B
_MOST: Final = 1_000_000  # attempts beyond it are no count of tries


def operations(
    frame: pl.DataFrame,
) -> tuple[NDArray[np.uint64] | None, NDArray[np.int64] | None]:
    """Return [n] hashes of the operations and the numbers of the attempts, 0 where one lacks.

    None where no row names an operation.
    """
    if fields.OPERATION not in frame.columns:
        return None, None
    name = frame[fields.OPERATION].cast(pl.String)
    named = (name.is_not_null() & (name != "")).fill_null(value=False).to_numpy()
    if not named.any():
        return None, None
    operation = name.hash(seed=_SEED).to_numpy()
    return np.where(named, operation, np.uint64(0)), np.where(named, _attempts(frame), 0)


def _attempts(frame: pl.DataFrame) -> NDArray[np.int64]:
    if fields.ATTEMPT not in frame.columns:
        return np.zeros(frame.height, np.int64)
    number = frame[fields.ATTEMPT].cast(pl.Float64, strict=False).fill_null(0).to_numpy()
    usable = (number >= 1) & (number <= _MOST)
    return np.where(usable, number, 0).astype(np.int64)
