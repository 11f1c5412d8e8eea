"""The columns of the table `panes`, and how a column of many panes becomes an Arrow array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

HEADER: Final = "(pane)"
"""Stage of the header row; no column of a record can make it, for it would end in "_ms"."""

SCALARS: Final[dict[str, pa.DataType]] = {
    "service": pa.string(),
    "stage": pa.string(),
    "pane": pa.uint32(),
    "cohort": pa.string(),
    "version": pa.uint64(),
    "pane_s": pa.uint32(),
    "n": pa.uint64(),
    "sum_ns": pa.int64(),
    "min_ms": pa.float64(),
    "max_ms": pa.float64(),
    "requests": pa.uint64(),
    "failed": pa.uint64(),
    "tau": pa.uint64(),
}
LISTS: Final[dict[str, pa.DataType]] = {
    "b": pa.int16(),
    "c": pa.uint64(),
    "covariates": pa.string(),
    "moment_n": pa.uint64(),
    "moment_mean": pa.float64(),
    "moment_product": pa.float64(),
    "log_n": pa.uint64(),
    "log_mean": pa.float64(),
    "log_product": pa.float64(),
    "thresholds_ms": pa.float64(),
    "over": pa.uint64(),
    "stages": pa.string(),
    "profile_b": pa.int16(),
    "profile_n": pa.uint64(),
    "profile_ns": pa.int64(),
    "profile_x": pa.float64(),
    "pair_n": pa.uint64(),
    "pair_mean": pa.float64(),
    "pair_product": pa.float64(),
    "sample_hash": pa.uint64(),
    "sample_id": pa.string(),
    "sample_ts_ns": pa.int64(),
    "sample_slowest": pa.uint8(),
    "sample_values": pa.float64(),
    "sources": pa.string(),
    "frontiers": pa.uint64(),
}
MAPS: Final[dict[str, pa.DataType]] = {"dims": pa.string(), "ledger": pa.uint64()}
NAMES: Final = (*SCALARS, *LISTS, *MAPS)


@dataclass(frozen=True, slots=True)
class Ragged:
    """A list of values a row, laid end to end.

    Attributes:
        values: all values, row after row.
        lengths: [rows] how many each row has.
        keys: keys beside the values, where the column is a map.
    """

    values: Sequence[Any] | NDArray[Any]
    lengths: NDArray[np.int64]
    keys: Sequence[str] = ()


Part = NDArray[Any] | Sequence[Any] | Ragged
"""One column of one pane: a value a row, or a list a row."""


def row_count(parts: dict[str, Part]) -> int:
    """Return the number of rows of one pane."""
    stages = parts["stage"]
    return len(stages.lengths if isinstance(stages, Ragged) else stages)


def arrow_table(parts: Sequence[dict[str, Part]]) -> pa.Table:
    """Return the panes one after another as a table of one chunk."""
    arrays = {name: _array(name, [part[name] for part in parts]) for name in NAMES}
    return pa.table(arrays)


def _array(name: str, parts: Sequence[Any]) -> pa.Array:
    if name in SCALARS:
        return pa.array(_join(parts), SCALARS[name])
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    if name in LISTS:
        values = pa.array(_join([part.values for part in parts]), LISTS[name])
        return pa.ListArray.from_arrays(pa.array(offsets), values)
    keys = pa.array([key for part in parts for key in part.keys], pa.string())
    values = pa.array(_join([part.values for part in parts]), MAPS[name])
    return pa.MapArray.from_arrays(pa.array(offsets), keys, values)


def _join(parts: Sequence[Any]) -> NDArray[Any] | list[Any]:
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts):
        return np.concatenate(arrays)
    return [value for part in parts for value in part]
