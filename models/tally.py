"""Count good and bad events of an objective by slice of time, exactly; and put counts together.

A request is bad when it failed or is slower than the objective's threshold (`Summary.over`).
Where the threshold was not counted, or a request's cohort is not known any more, nobody can say:
such requests are `unknown`, which is neither good nor bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import ALL, OTHER, Cohort
from tailbudget.schemas.objectives import Correction, Objective
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.tally import Count, Tally

FOREVER_NS: Final = 2**62


def empty_tally(slice_ns: int) -> Tally:
    """Return a tally of nothing."""
    none = np.zeros(0, np.int64)
    return Tally(slice_ns, none, none, none, none)


def tally(summary: Summary, objective: Objective, slice_ns: int) -> Tally:
    """Return the requests of an objective in a summary.

    Args:
        summary: of the objective's service.
        objective: what counts and what is good.
        slice_ns: length of a slice, a whole number of the summary's panes.
    """
    inside = _inside(summary.cohorts, objective.cohort)
    bad = _bad(summary, objective.threshold_ms)
    requests = summary.requests
    known = (inside == 1) if bad is not None else np.zeros(len(inside), np.bool_)
    unsure = (inside != 0) & ~known
    counted = summary.failed if bad is None else bad
    columns = (
        np.where(known, requests, 0),
        np.where(known, counted, 0),
        np.where(unsure, requests, 0),
    )
    return _sum(slice_ns, summary.pane_ns, columns)


def merge_tallies(parts: Iterable[Tally], slice_ns: int) -> Tally:
    """Return the sum of tallies whose slices fit into slices of `slice_ns`.

    Raises:
        ValueError: a part has slices that do not fit.
    """
    parts = list(parts)
    if wrong := [part.slice_ns for part in parts if slice_ns % part.slice_ns]:
        raise ValueError(f"slices of {wrong[0]} ns do not fit into {slice_ns} ns")
    if not parts:
        return empty_tally(slice_ns)
    starts, total, bad, unknown = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("start_ns", "total", "bad", "unknown")
    )
    return _sum(slice_ns, starts, (total, bad, unknown))


def between(counted: Tally, start_ns: int, end_ns: int) -> Tally:
    """Return the slices that start in [start_ns, end_ns)."""
    return _take(counted, slice(*np.searchsorted(counted.start_ns, (start_ns, end_ns)).tolist()))


def with_newer(counted: Tally, newer: Tally) -> Tally:
    """Return the sum of a long tally and a few newer events, whose slices fit into its own."""
    if not len(newer.start_ns):
        return counted
    first_ns = int(newer.start_ns[0]) // counted.slice_ns * counted.slice_ns
    old = between(counted, 0, first_ns)
    new = merge_tallies([between(counted, first_ns, FOREVER_NS), newer], counted.slice_ns)
    columns = zip(_columns(old), _columns(new), strict=True)
    return Tally(counted.slice_ns, *(np.concatenate(pair) for pair in columns))


def without(counted: Tally, corrections: Sequence[Correction]) -> Tally:
    """Return the tally without the slices that a correction touches."""
    keep = np.ones(len(counted.start_ns), np.bool_)
    for span in corrections:
        ends = counted.start_ns + counted.slice_ns
        keep &= (ends <= span.start_ns) | (counted.start_ns >= span.end_ns)
    return _take(counted, np.flatnonzero(keep))


def count(counted: Tally) -> Count:
    """Return the sums over all slices."""
    return Count(int(counted.total.sum()), int(counted.bad.sum()), int(counted.unknown.sum()))


def as_slices(counted: Tally, target: Fraction) -> Tally:
    """Return each slice as one event: good when at least `target` of its requests were good.

    A slice without requests is no event. One that unknown requests could tip is unknown.
    """
    of = counted.total + counted.unknown
    numerator, denominator = target.numerator, target.denominator
    worst = (counted.total - counted.bad) * denominator < of * numerator
    best = (of - counted.bad) * denominator < of * numerator
    exists = of > 0
    known = exists & (worst == best)
    columns = tuple(column.astype(np.int64) for column in (known, known & worst, exists & ~known))
    return _sum(counted.slice_ns, counted.start_ns[exists], _pick(columns, exists))


def _inside(cohorts: Sequence[Cohort], wanted: Cohort) -> NDArray[np.int64]:
    """Return 1 for cohorts that belong, 0 for others, and -1 where that is not known any more."""
    pairs = set(wanted)
    return np.array([_belongs(cohort, pairs) for cohort in cohorts], np.int64)


def _belongs(cohort: Cohort, pairs: set[tuple[str, str]]) -> int:
    if not pairs:
        return 1
    if cohort in (ALL, OTHER):
        return -1
    return int(pairs <= set(cohort))


def _bad(summary: Summary, threshold_ms: float | None) -> NDArray[np.int64] | None:
    if threshold_ms is None:
        return summary.failed
    if threshold_ms not in summary.thresholds_ms:
        return None
    return summary.over[:, summary.thresholds_ms.index(threshold_ms)]


def _sum(slice_ns: int, at_ns: NDArray[np.int64], columns: tuple[NDArray[np.int64], ...]) -> Tally:
    starts, place = np.unique(at_ns // slice_ns * slice_ns, return_inverse=True)
    sums = [np.zeros(len(starts), np.int64) for _ in columns]
    for total, column in zip(sums, columns, strict=True):
        np.add.at(total, place, column)
    filled = np.flatnonzero((sums[0] != 0) | (sums[1] != 0) | (sums[2] != 0))
    return _take(Tally(slice_ns, starts, *sums), filled)


def _take(counted: Tally, at: NDArray[np.intp] | slice) -> Tally:
    return Tally(counted.slice_ns, *_pick(_columns(counted), at))


def _columns(counted: Tally) -> tuple[NDArray[np.int64], ...]:
    return counted.start_ns, counted.total, counted.bad, counted.unknown


def _pick(
    columns: tuple[NDArray[np.int64], ...], at: NDArray[np.intp] | NDArray[np.bool_] | slice
) -> tuple[NDArray[np.int64], ...]:
    return tuple(column[at] for column in columns)
