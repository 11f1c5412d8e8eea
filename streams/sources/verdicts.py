"""Which rows are records, which contradict themselves, and which cells are unusable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas import ledger
from tailbudget.schemas.records import Outcome
from tailbudget.streams.sources import repair, timetext

DAY_MS: Final = 86_400_000.0
"""No request and no stage credibly takes longer."""

_NAN: Final = np.nan

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a batch of one service, in which unusable ones become NaN.

    Attributes:
        no_id: [n] without a request id.
        no_time: [n] without a timestamp.
        ts_ns: [n] event time, `timetext.UNREADABLE` where it is none.
        arrival_ns: [n] when the row arrived.
        outcome: [n] how it ended.
        total_ms: [n] end-to-end latency.
        stage_ms: [S, n] stages.
        covariate: [C, n] covariates.
    """

    no_id: Mask
    no_time: Mask
    ts_ns: NDArray[np.int64]
    arrival_ns: NDArray[np.int64]
    outcome: NDArray[np.int8]
    total_ms: Floats
    stage_ms: Floats
    covariate: Floats


def credible_time(cells: Cells, max_future_ns: int) -> Mask:
    """Return [n] whether the row's own time is one to count it under."""
    in_range = (cells.ts_ns >= timetext.FIRST_NS) & (cells.ts_ns <= timetext.LAST_NS)
    return in_range & (cells.ts_ns - cells.arrival_ns <= max_future_ns)


def row_verdicts(cells: Cells, credible: Mask) -> Iterable[tuple[str, Mask]]:
    """Yield (reason, [n] mask) for each reason to refuse a row; the first that holds counts.

    Must follow `clear_cells`, so that unusable stages accuse nobody.
    """
    yield ledger.NO_ID, cells.no_id
    yield ledger.NO_TIMESTAMP, cells.no_time
    if not credible.all():
        in_range = (cells.ts_ns >= timetext.FIRST_NS) & (cells.ts_ns <= timetext.LAST_NS)
        yield ledger.BAD_TIMESTAMP, cells.ts_ns == timetext.UNREADABLE
        yield ledger.OUT_OF_RANGE_TIME, ~in_range
        yield ledger.FUTURE, ~credible
    total = cells.total_ms
    if not ((total >= 0) & (total <= DAY_MS)).all():
        yield ledger.NO_TOTAL, np.isnan(total) & (cells.outcome == Outcome.OK)
        yield ledger.NOT_A_NUMBER, total == repair.NOT_A_NUMBER
        yield ledger.NOT_FINITE, np.abs(total) >= repair.HUGE
        yield ledger.NEGATIVE_TOTAL, total < 0
        yield ledger.TOTAL_OUT_OF_RANGE, total > DAY_MS
    yield from _contradictions(cells)


def _contradictions(cells: Cells) -> Iterable[tuple[str, Mask]]:
    """Yield the rows of which one stage is more than 100 times the total.

    Only successes: a request that failed early may carry a stage's limit. A total below 0.01 ms is
    taken as that, for it may have been rounded. It looks like seconds where a thousandfold total
    would lie between two thirds of the longest stage and three times their sum.
    """
    if not len(cells.stage_ms):
        return
    longest = np.fmax.reduce(cells.stage_ms, axis=0)
    total = np.clip(cells.total_ms, 0.01, DAY_MS)
    wrong = (longest > 100 * total) & (cells.outcome == Outcome.OK)
    if wrong.any():
        covered = np.nansum(cells.stage_ms, axis=0)
        seconds = (longest <= 1500 * total) & (covered >= 300 * total)
        yield ledger.TOTAL_IN_SECONDS, wrong & seconds
        yield ledger.STAGE_EXCEEDS_TOTAL, wrong


def clear_cells(cells: Cells) -> Iterable[tuple[str, NDArray[np.int64]]]:
    """Make unusable cells NaN, in place; yield (reason, [n] number of such cells in each row)."""
    failed_total = (cells.outcome != Outcome.OK) & _unusable(cells.total_ms)
    if failed_total.any():
        cells.total_ms[failed_total] = _NAN
        yield ledger.MISSING_TOTAL, failed_total.astype(np.int64)
    stages = cells.stage_ms
    if _unusable(stages).any():
        infinite = np.abs(stages) >= repair.HUGE
        for reason, mask in (
            (ledger.NOT_FINITE_STAGE, infinite),
            (ledger.NEGATIVE_STAGE, (stages < 0) & ~infinite),
            (ledger.STAGE_OUT_OF_RANGE, (stages > DAY_MS) & ~infinite),
        ):
            yield reason, mask.sum(axis=0)
        stages[_unusable(stages)] = _NAN
    infinite = np.abs(cells.covariate) >= repair.HUGE
    if infinite.any():
        cells.covariate[infinite] = _NAN
        yield ledger.MISSING_COVARIATE, infinite.sum(axis=0)


def _unusable(values: Floats) -> Mask:
    return (values < 0) | (values > DAY_MS)
