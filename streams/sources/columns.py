"""A frame of one service's rows to `Columns`, judged and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.schemas import ledger
from tailbudget.schemas.records import TTFT, Columns, Outcome
from tailbudget.streams.sources import fields, numbers, repair
from tailbudget.streams.sources.attempts import operations
from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.cohorts import cohorts
from tailbudget.streams.sources.outcomes import outcomes
from tailbudget.streams.sources.schedule import from_schedule, waits
from tailbudget.streams.sources.stamps import stamps
from tailbudget.streams.sources.tally import Tally
from tailbudget.streams.sources.timetext import NS
from tailbudget.streams.sources.token_times import with_token_times
from tailbudget.streams.sources.verdicts import Cells, clear_cells, credible_time, row_verdicts

_SEED: Final = 0x1D
_MAX_WEIGHT: Final = 1e9
_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)  # of splitmix64: parts dithering from sampling

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one service.

    Attributes:
        service: its name.
        frame: [n] rows.
        offset: [n] source offset.
        arrival_ns: [n] when each arrived.
        reject: called with (row, reason) for each row that is no record.
        tally: counts what became of the rows.
    """

    service: str
    frame: pl.DataFrame
    offset: Ints
    arrival_ns: Ints
    reject: Callable[[int, str], None]
    tally: Tally

    def count(self, second: Ints, reason: str, each: Ints | None = None) -> None:
        """Count rows by their second, or `each` things in each row."""
        self.tally.add_rows(self.service, second, reason, each)


class Ids(Sequence[str]):
    """Request ids, left in polars' memory: only the few of sampled rows are ever looked up."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def __len__(self) -> int:
        return len(self._series)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self._series[index].to_list()
        return str(self._series[int(index)])

    def gather(self, at: NDArray[np.intp]) -> list[str]:
        """Look up ids at these indices."""
        return list(self._series[at].to_list())  # its `gather` plans a query


def build(rows: Rows, rules: Rules) -> tuple[Columns | None, tuple[str, ...]]:
    """Return the accepted rows (None where there are none) and the unknown columns; count all."""
    frame = rows.frame
    present = frozenset(s.name for s in frame.get_columns() if s.null_count() < frame.height)
    layout = fields.layout(present, rules.of(rows.service))
    cells = _cells(rows, layout, rules.timezone)
    credible = credible_time(cells, rules.max_future_ns)
    second = np.where(credible, cells.ts_ns, cells.arrival_ns) // NS
    for reason, count in clear_cells(cells):
        rows.count(second, reason, count)
    _count_unknown(rows, layout, second)
    keep = _sift(rows, cells, credible, second)
    if not keep.any():
        return None, layout.unknown
    chosen = slice(None) if keep.all() else np.flatnonzero(keep)
    columns = _columns(rows, layout, cells, chosen, second)
    if TTFT in columns.stages and fields.TOKENS in present:
        columns = with_token_times(columns, _floats(frame, fields.TOKENS)[chosen])
    if fields.SCHEDULED in present:
        schedule = waits(frame[fields.SCHEDULED], cells.ts_ns, rules.timezone)
        rows.count(second[keep & schedule.wrong], ledger.MISSING_SCHEDULE)
        columns = from_schedule(columns, schedule.wait_ms[chosen])
    return columns, layout.unknown


def _cells(rows: Rows, layout: fields.Layout, timezone: str | None) -> Cells:
    frame = rows.frame
    stamp = stamps(frame[fields.TIME], timezone)
    return Cells(
        no_id=(_filled(frame, fields.ID) == "").to_numpy(),
        no_time=stamp.missing,
        ts_ns=stamp.ns,
        arrival_ns=rows.arrival_ns,
        outcome=outcomes(frame[fields.STATUS]),
        total_ms=_floats(frame, fields.TOTAL),
        stage_ms=_matrix(frame, [column for _, column in layout.stages]),
        covariate=_matrix(frame, layout.covariates),
    )


def _filled(frame: pl.DataFrame, column: str) -> pl.Series:
    series = frame[column]
    return series.fill_null("") if series.null_count() else series


def _matrix(frame: pl.DataFrame, columns: Sequence[str]) -> Floats:
    matrix = np.empty((len(columns), frame.height))
    for index, column in enumerate(columns):
        matrix[index] = _floats(frame, column)
    return matrix


def _floats(frame: pl.DataFrame, column: str) -> Floats:
    """Return a writable column; a column that is text for another service's sake is converted."""
    series = frame[column]
    if series.dtype == pl.Float64:
        return series.to_numpy(writable=True)
    return numbers.floats(series).to_numpy(writable=True)


def _sift(
    rows: Rows,
    cells: Cells,
    credible: NDArray[np.bool_],
    second: Ints,
) -> NDArray[np.bool_]:
    """Return [n] which rows are accepted; count the others by the first reason that holds."""
    keep = np.ones(len(second), np.bool_)
    for reason, mask in row_verdicts(cells, credible):
        mine = mask & keep
        if not mine.any():
            continue
        keep &= ~mine
        rows.count(second[mine], reason)
        if ledger.is_rejected(reason):
            for row in np.flatnonzero(mine):
                rows.reject(int(row), reason)
    return keep


def _count_unknown(
    rows: Rows,
    layout: fields.Layout,
    second: Ints,
) -> None:
    if not layout.unknown:
        return
    height = rows.frame.height
    count = np.zeros(height, np.int64)
    for name in layout.unknown:
        series = rows.frame[name]
        count += 1 if series.null_count() == 0 else series.is_not_null().to_numpy()
    rows.count(second, ledger.UNKNOWN_COLUMN, count)


def _columns(
    rows: Rows,
    layout: fields.Layout,
    cells: Cells,
    chosen: slice | Ints,
    second: Ints,
) -> Columns:
    frame = rows.frame if isinstance(chosen, slice) else rows.frame[chosen]
    second = second[chosen]
    outcome = cells.outcome[chosen]
    rows.count(second, ledger.ACCEPTED)
    rows.count(second[outcome != Outcome.OK], ledger.FAILED)
    operation, attempt = operations(frame)
    id_hash = frame[fields.ID].hash(seed=_SEED).to_numpy()
    if attempt is not None:  # the attempts of an operation may share its id
        id_hash = id_hash ^ attempt.astype(np.uint64) * _MIX
    distinct, cohort = cohorts(frame, layout.dims)
    stage_ms, covariate = cells.stage_ms[:, chosen], cells.covariate[:, chosen]
    has_stage, has_covariate = _has_any(stage_ms), _has_any(covariate)
    return Columns(
        service=rows.service,
        cohorts=distinct,
        cohort=cohort,
        id_hash=id_hash,
        ids=Ids(frame[fields.ID]),
        ts_ns=cells.ts_ns[chosen],
        outcome=outcome,
        total_ms=cells.total_ms[chosen],
        limit_ms=_limit(rows, frame, second),
        weight=_weight(rows, frame, id_hash, second),
        stages=tuple(s for (s, _), has in zip(layout.stages, has_stage, strict=True) if has),
        stage_ms=stage_ms if all(has_stage) else stage_ms[has_stage],
        covariates=tuple(c for c, has in zip(layout.covariates, has_covariate, strict=True) if has),
        covariate=covariate if all(has_covariate) else covariate[has_covariate],
        offset=rows.offset[chosen],
        operation=operation,
        attempt=attempt,
    )


def _has_any(matrix: Floats) -> list[bool]:
    return [not bool(np.isnan(row).all()) for row in matrix]


def _limit(rows: Rows, frame: pl.DataFrame, second: Ints) -> Floats:
    """Return the time limits; zero means none, as many clients write it."""
    if fields.LIMIT not in frame.columns:
        return np.full(frame.height, np.nan)
    limit = _floats(frame, fields.LIMIT)
    wrong = (limit < 0) | (limit >= repair.HUGE)
    rows.count(second[wrong], ledger.MISSING_LIMIT)
    limit[wrong | (limit == 0)] = np.nan
    return limit


def _weight(
    rows: Rows,
    frame: pl.DataFrame,
    id_hash: NDArray[np.uint64],
    second: Ints,
) -> Ints | None:
    """Return whole weights: a fraction is rounded up as often as it is large, by the id's hash."""
    if fields.WEIGHT not in frame.columns or frame[fields.WEIGHT].null_count() == frame.height:
        return None
    weight = _floats(frame, fields.WEIGHT)
    wrong = (weight < 1) | (weight > _MAX_WEIGHT)
    rows.count(second[wrong], ledger.MISSING_WEIGHT)
    weight[wrong | np.isnan(weight)] = 1
    whole = np.floor(weight)
    lot = (id_hash * _MIX >> np.uint64(11)) * 2.0**-53
    return (whole + (lot < weight - whole)).astype(np.int64)
