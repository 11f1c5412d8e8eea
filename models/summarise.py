"""Summarise a batch of records: the first and hottest step of the way of a record.

Every array operation runs over all records at once; nothing runs Python code a record. Rows are
put in the order (group, latency) once, and every sum is then a sum over neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.columns import gather
from tailbudget.models.groups import Groups, compact, number_groups
from tailbudget.models.moments import empty_moments, moments_of_rows
from tailbudget.models.order import order, run_starts
from tailbudget.models.profile import profile_of_rows
from tailbudget.models.rows import Successes, nanoseconds, successes
from tailbudget.models.sample import KEEP, NO_LIMIT, Keep, Rows, choose
from tailbudget.models.stages import Values, add_up
from tailbudget.schemas.ledger import ACCEPTED, CLAMPED, FAILED, OVERLAP
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.summary import FIXED_STAGES, Moments, Sample, Summary

_ID_LETTERS = 64
_Weight = NDArray[np.int64] | None


def summarise(
    columns: Columns,
    *,
    pane_ns: int,
    thresholds_ms: Sequence[float],
    keep: Keep = KEEP,
) -> Summary:
    """Return the summary of a batch of one service.

    Failures (any outcome but OK) count as requests and as bad for every threshold; their latency
    goes to the stage "failed" alone. Everything else is about successes.

    Args:
        columns: the records; durations are finite or NaN and not negative.
        pane_ns: length of a pane.
        thresholds_ms: latencies above which requests are counted exactly.
        keep: how many whole records to keep.
    """
    thresholds = tuple(sorted(set(map(float, thresholds_ms))))
    stages = (*FIXED_STAGES, *columns.stages)
    starts_ns = columns.ts_ns // pane_ns * pane_ns
    groups = number_groups(starts_ns, columns.cohort, columns.cohorts)
    bad = columns.outcome != Outcome.OK
    rows = successes(columns, ~bad & ~np.isnan(columns.total_ms), groups.of, len(groups))
    failures = _failures(columns, bad, groups)
    sums = add_up(_values(rows, failures), len(groups), len(stages))
    requests, failed, over = _counters(columns, bad, groups, thresholds)
    return Summary(
        service=columns.service,
        stages=stages,
        covariates=columns.covariates,
        thresholds_ms=thresholds,
        pane_ns=groups.pane_ns,
        cohorts=groups.cohorts,
        requests=requests,
        failed=failed,
        over=over,
        n=sums.n,
        sum_ns=sums.sum_ns,
        min_ms=sums.min_ms,
        max_ms=sums.max_ms,
        cell=sums.cells.cell,
        bucket=sums.cells.bucket,
        count=sums.cells.count,
        profile=profile_of_rows(rows),
        moments=_moments(rows, len(groups)),
        sample=_sample(columns, rows, groups, keep),
        ledger=_ledger(groups, bad, rows, sums.clamped),
    )


def _counters(
    columns: Columns, bad: NDArray[np.bool_], groups: Groups, thresholds: tuple[float, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return requests [G], failed [G] and over [G, T]."""
    over = np.empty((len(groups), len(thresholds)), np.int64)
    for t, threshold in enumerate(thresholds):
        above = bad | (columns.total_ms > threshold)
        over[:, t] = _count(groups, above, columns.weight)
    requests = _count(groups, None, columns.weight)
    return requests, _count(groups, bad, columns.weight), over


def _count(groups: Groups, chosen: NDArray[np.bool_] | None, weight: _Weight) -> NDArray[np.int64]:
    """Count the chosen rows (all when None) of each group, weighted."""
    of = groups.of
    if chosen is not None:
        at = np.flatnonzero(chosen)
        of, weight = of[at], None if weight is None else weight[at]
    return np.bincount(of, weight, len(groups)).astype(np.int64)


def _failures(columns: Columns, bad: NDArray[np.bool_], groups: Groups) -> Values:
    """Return the latency of failures, as far as it is known: the larger of total and limit."""
    at = np.flatnonzero(bad)
    ms = np.fmax(columns.total_ms[at], columns.limit_ms[at])
    known = ~np.isnan(ms)
    at, ms = at[known], ms[known]
    ranked = order(groups.of[at], len(groups))
    at, ms = at[ranked], ms[ranked]
    of = groups.of[at]
    weight = None if columns.weight is None else columns.weight[at]
    return Values(FIXED_STAGES.index("failed"), of, run_starts(of), ms, nanoseconds(ms), weight)


def _values(rows: Successes, failures: Values) -> Iterator[Values]:
    """Yield the values of each stage that is not missing throughout."""
    yield failures
    starts = run_starts(rows.group)
    for i, stage in enumerate(_stage_numbers(rows)):
        if rows.complete[i]:
            yield Values(stage, rows.group, starts, rows.ms[i], rows.ns[i], rows.weight)
            continue
        at = np.flatnonzero(~np.isnan(rows.ms[i]))
        of = rows.group[at]
        weight = None if rows.weight is None else rows.weight[at]
        yield Values(stage, of, run_starts(of), rows.ms[i][at], rows.ns[i][at], weight)


def _stage_numbers(rows: Successes) -> list[int]:
    """Return the stage of each row of `rows.ms`: all but "failed"."""
    return [0, *range(2, len(rows.ms) + 1)]


def _moments(rows: Successes, groups: int) -> Moments:
    covariates, stages = len(rows.covariate), len(rows.ms) + 1
    result = empty_moments(groups, covariates, stages)
    if not covariates or not len(rows.at):
        return result
    starts = run_starts(rows.group)
    numbers = np.array(_stage_numbers(rows), np.intp)
    found = moments_of_rows(rows.covariate, rows.ms, starts, rows.weight, numbers)
    if len(starts) == groups:
        return found
    for field in fields(Moments):
        getattr(result, field.name)[rows.group[starts]] = getattr(found, field.name)
    return result


def _sample(columns: Columns, rows: Successes, groups: Groups, keep: Keep) -> Sample:
    hashes, ts_ns = columns.id_hash[rows.at], columns.ts_ns[rows.at]
    candidates = Rows(
        groups=len(groups),
        pane=compact(groups.pane_ns)[1],
        group=rows.group,
        hash=hashes,
        total_ms=rows.ms[0],
        ties=(ts_ns, *rows.ms, *rows.covariate),
    )
    choice = choose(candidates, np.full(len(groups), NO_LIMIT), keep)
    stages = np.insert(rows.ms[:, choice.at], 1, np.nan, axis=0)
    values = np.concatenate([stages, rows.covariate[:, choice.at]])
    return Sample(
        tau=choice.tau,
        group=rows.group[choice.at].astype(np.int32),
        hash=hashes[choice.at],
        ids=tuple(text[:_ID_LETTERS] for text in gather(columns.ids, rows.at[choice.at])),
        ts_ns=ts_ns[choice.at],
        slowest=choice.slowest,
        values=np.ascontiguousarray(values.T),
    )


def _ledger(
    groups: Groups, bad: NDArray[np.bool_], rows: Successes, clamped: NDArray[np.int64]
) -> dict[tuple[int, str], int]:
    """Count rows (not weights) by pane."""
    panes, pane = compact(groups.pane_ns)
    by_group = {
        ACCEPTED: np.bincount(groups.of, minlength=len(groups)),
        FAILED: np.bincount(groups.of[bad], minlength=len(groups)),
        OVERLAP: np.bincount(rows.group[rows.overlap], minlength=len(groups)),
        CLAMPED: clamped,
    }
    ledger = {}
    for reason, counts in by_group.items():
        for start, count in zip(panes.tolist(), np.bincount(pane, counts).tolist(), strict=True):
            if count:
                ledger[start, reason] = int(count)
    return ledger
