"""Retries of one operation are one request: attempts in, requests out.

A request lasts from the start of its first attempt to the end of its last, as its user sees it.
The last attempt gives it outcome, id, cohort and input shape; its stages are summed over the
attempts, and the gaps between them are the stage `retry_wait`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.columns import pick
from tailbudget.schemas.records import (
    ATTEMPTS,
    LOGGED,
    NO_PART,
    RETRY_WAIT,
    SCHEDULE_WAIT,
    TTFT,
    Columns,
    Outcome,
)

Floats = NDArray[np.float64]
At = NDArray[np.intp]

FINAL: Final = (Outcome.OK, Outcome.CANCELLED)
"""Outcomes after which nobody tries again: it worked, or its user has gone."""

_NS_PER_MS: Final = 1e6


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts of one operation that make one request.

    Attributes:
        rows: their rows, in the order of the attempts.
        complete: the last one is final, and none before it lacks.
    """

    rows: Sequence[int]
    complete: bool


def duration_ms(columns: Columns) -> Floats:
    """Return [n] how long each attempt took from its start; NaN where nobody knows.

    A failure without a total took as long as its limit.
    """
    total = np.where(np.isnan(columns.total_ms), columns.limit_ms, columns.total_ms)
    took: Floats = total - _waits_ms(columns)
    return took


def ends_ns(columns: Columns) -> NDArray[np.int64]:
    """Return [n] when each attempt ended; its start where nobody knows."""
    took = np.nan_to_num(duration_ms(columns))
    return columns.ts_ns + np.round(took * _NS_PER_MS).astype(np.int64)


def sequence(columns: Columns, hold_ns: int) -> list[Attempts]:
    """Return what requests the attempts of one operation make, in their order.

    A request ends with a final attempt, or where the next one starts later than `hold_ns` after
    the end of the one before.

    Args:
        columns: the attempts, in any order.
        hold_ns: how long the next attempt may take to come.
    """
    number = np.zeros(len(columns), np.int64) if columns.attempt is None else columns.attempt
    order = np.lexsort((columns.id_hash, columns.ts_ns, number))
    final, ends = np.isin(columns.outcome, FINAL).tolist(), ends_ns(columns).tolist()
    starts, numbers = columns.ts_ns.tolist(), number.tolist()
    found: list[Attempts] = []
    rows: list[int] = []
    known = 0  # attempts up to this number are there
    whole = True
    for row in order.tolist():
        if rows and starts[row] > ends[rows[-1]] + hold_ns:
            found.append(Attempts(rows, complete=False))
            rows = []
        whole = whole and numbers[row] <= known + 1
        known = max(known, numbers[row])
        rows.append(row)
        if final[row]:
            found.append(Attempts(rows, complete=whole))
            rows = []
    return [*found, Attempts(rows, complete=False)] if rows else found


def assemble(columns: Columns, requests: Sequence[Attempts]) -> Columns:
    """Return one row for each request, in the order given.

    Args:
        columns: attempts, of any operations.
        requests: which of them make a request; none is empty.
    """
    last = np.array([one.rows[-1] for one in requests], np.intp)
    chosen = replace(pick(columns, last), operation=None, attempt=None)
    several = [i for i, one in enumerate(requests) if len(one.rows) > 1]
    if not several:
        return chosen
    joined = _Joined(columns, chosen)
    for i in several:
        joined.write(i, np.array(requests[i].rows, np.intp))
    return joined.result()


class _Joined:
    """Rows of last attempts, made to requests one by one.

    Args:
        columns: all attempts.
        chosen: the last attempt of each request.
    """

    def __init__(self, columns: Columns, chosen: Columns) -> None:
        self._columns = columns
        self._chosen = chosen
        self._took_ms = duration_ms(columns)
        self._wait_ms = _waits_ms(columns)
        self._ts_ns = chosen.ts_ns.copy()
        self._total_ms = chosen.total_ms.copy()
        own = dict(zip(chosen.stages, chosen.stage_ms, strict=True))
        own.setdefault(RETRY_WAIT, np.full(len(chosen), np.nan))
        self._stage_ms = {name: own[name].copy() for name in sorted(own)}
        self._attempts = np.full(len(chosen), np.nan)

    def write(self, i: int, rows: At) -> None:
        """Make row i the request of these attempts."""
        starts, took = self._columns.ts_ns[rows], self._took_ms[rows]
        first_wait = float(self._wait_ms[rows[0]])
        since_first_ms = (starts - starts[0]) / _NS_PER_MS
        total = since_first_ms[-1] + took[-1] + first_wait
        gaps = np.diff(since_first_ms) - took[:-1]
        self._ts_ns[i] = starts[0]
        self._total_ms[i] = max(total, 0.0)
        for stage, values in zip(self._columns.stages, self._columns.stage_ms, strict=True):
            if stage not in NO_PART:
                self._stage_ms[stage][i] = _sum(values[rows])
        if SCHEDULE_WAIT in self._stage_ms:
            self._stage_ms[SCHEDULE_WAIT][i] = self._columns.stage_ms[
                self._columns.stages.index(SCHEDULE_WAIT), rows[0]
            ]
        if LOGGED in self._stage_ms:
            self._stage_ms[LOGGED][i] = total - first_wait
        if TTFT in self._stage_ms:  # the last attempt's token, counted from the first one's start
            self._stage_ms[TTFT][i] += since_first_ms[-1]
        self._stage_ms[RETRY_WAIT][i] = _sum(
            np.append(np.maximum(gaps, 0), self._stage_ms[RETRY_WAIT][i])
        )
        self._attempts[i] = len(rows)

    def result(self) -> Columns:
        """Return the requests."""
        covariates = dict(zip(self._chosen.covariates, self._chosen.covariate, strict=True))
        covariates[ATTEMPTS] = self._attempts
        names = tuple(sorted(covariates))
        return replace(
            self._chosen,
            ts_ns=self._ts_ns,
            total_ms=self._total_ms,
            stages=tuple(self._stage_ms),
            stage_ms=np.array(list(self._stage_ms.values())),
            covariates=names,
            covariate=np.array([covariates[name] for name in names]),
        )


def _sum(values: Floats) -> float:
    """Return the sum of the values that are there; NaN where none is."""
    known = values[~np.isnan(values)]
    return float(known.sum()) if len(known) else float("nan")


def _waits_ms(columns: Columns) -> Floats:
    """Return [n] how long before its start each attempt was due; 0 where none says."""
    if SCHEDULE_WAIT not in columns.stages:
        return np.zeros(len(columns))
    waits: Floats = np.nan_to_num(columns.stage_ms[columns.stages.index(SCHEDULE_WAIT)])
    return waits
