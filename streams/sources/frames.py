"""Rows that are columns already (Parquet, CSV, data frames, answers of a database)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from tailbudget.schemas.records import NO_SERVICE, Decoded, Rejected
from tailbudget.streams.sources import fields, numbers
from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.native import CULPRIT
from tailbudget.streams.sources.renamed import renamed
from tailbudget.streams.sources.services import Batch, judge
from tailbudget.streams.sources.tally import Tally

_TIMES: Final = frozenset({fields.TIME, fields.SCHEDULED})
_EXACT: Final = 2.0**53


class FrameDecoder:
    """Decodes frames to what the same rows as JSON lines give; nothing depends on the cut.

    A cell of a frame is missing where it is null. NaN is a number that was written, as in JSON.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        dims = {dim for one in rules.all() for dim in one.cohort_dims}
        self._texts = {fields.ID, fields.STATUS, fields.SERVICE} | dims

    def decode(
        self,
        frame: pl.DataFrame,
        offset: NDArray[np.int64],
        arrival_ns: int,
        rejected: Sequence[Rejected] = (),
    ) -> Decoded:
        """Decode rows; never raises for what a cell contains.

        Args:
            frame: [n] rows under the names of the source.
            offset: [n] row number of each.
            arrival_ns: when they arrived.
            rejected: rows of the same block that were no rows at all, to be counted.
        """
        tally, dead = Tally(), list(rejected)
        for one in rejected:
            tally.add(self._rules.service or NO_SERVICE, arrival_ns, one.reason)
        if not frame.height:
            return Decoded((), tuple(dead), dict(tally.counts), frozenset())
        arrived = np.full(frame.height, arrival_ns)
        plain = renamed(frame, offset, arrived, self._rules)

        def reject(at: int, reason: str) -> None:
            dead.append(_dead_letter(plain, at, int(offset[at]), reason))

        batch = Batch(self._typed(plain), offset, arrived, reject)
        services, unknown = judge(batch, self._rules, tally)
        dead.sort(key=lambda item: item.offset)
        return Decoded(services, tuple(dead), dict(tally.counts), unknown)

    def _typed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows, our columns of the types that JSON gives them; others as they are."""
        return frame.with_columns(
            converted.alias(series.name)
            for series in frame.get_columns()
            if (converted := self._converted(series)) is not series
        )

    def _converted(self, series: pl.Series) -> pl.Series:
        name = series.name
        if name in _TIMES:
            return _text(series) if series.dtype.is_nested() else series
        if name in self._texts:
            return _text(series)
        if fields.is_number(name, self._rules):
            return numbers.floats(series)
        return series


def _text(series: pl.Series) -> pl.Series:
    """Return cells as text, as they would be read from JSON: 1.0 is "1" and true is "true"."""
    kind = series.dtype
    if kind == pl.String:
        return series
    if kind.is_float():
        whole = (series.round() == series) & (series.abs() < _EXACT)
        return (
            series.cast(pl.Int64, strict=False)
            .cast(pl.String)
            .zip_with(whole.fill_null(value=False), series.cast(pl.String))
        )
    if kind == pl.Binary:
        return text_of_bytes(series)
    if kind.is_nested() or kind == pl.Object:
        cells = [None if cell is None else _json(cell) for cell in series.to_list()]
        return pl.Series(series.name, cells, pl.String)
    return series.cast(pl.String, strict=False)


def text_of_bytes(series: pl.Series) -> pl.Series:
    """Return bytes as text; a cell that is no UTF-8 becomes hexadecimal."""
    try:
        return series.cast(pl.String)
    except pl.exceptions.ComputeError:
        cells = [None if cell is None else _decoded(cell) for cell in series.to_list()]
        return pl.Series(series.name, cells, pl.String)


def _decoded(cell: bytes) -> str:
    try:
        return cell.decode()
    except UnicodeDecodeError:
        return cell.hex()


def _json(cell: object) -> str:
    return orjson.dumps(cell, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _dead_letter(frame: pl.DataFrame, at: int, offset: int, reason: str) -> Rejected:
    name = CULPRIT[reason]
    value = frame[name][at]
    detail = f"{name} is missing" if value is None else f"{name} is {str(value)[:120]!r}"
    return Rejected(offset, reason, detail, str(frame.row(at, named=True)).encode()[:1024])
