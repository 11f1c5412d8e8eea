"""Which cohorts are slow, and what would the p99 be without each?

A row for each value of each dimension, for pairs of values of two dimensions, and for whole
cohorts of three or more (of two, the pair is the whole cohort). Pairs multiply: of each dimension
the `MOST_VALUES` values are kept that are most over-represented among slow requests, of each pair
of dimensions `MOST_PAIRS`, and as many whole cohorts as values; "(other)" always.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.cohort_split import (
    WHOLE,
    CohortTotals,
    Parts,
    gather,
    members_of,
    over_represented,
    p99s_ms,
    rows_of,
    slow_counts,
)
from tailbudget.schemas.sections import CohortRow
from tailbudget.schemas.summary import TOTAL, Summary

MOST_VALUES: Final = 50
MOST_PAIRS: Final = 20

PAIR: Final = "+"
"""Between the two dimensions of a pair, and between their values."""


def cohort_table(cohorts: Summary) -> tuple[CohortRow, ...]:
    """Return the rows of a summary that has a group for each cohort.

    The most over-represented come first; of equal ones values, then pairs, then whole cohorts.
    A pair of which one value alone has the same requests is left out: it says nothing more.
    """
    totals = totals_of(cohorts)
    if not totals.requests.sum():
        return ()
    parts = _kept(totals, _parts(totals))
    if not parts:
        return ()
    rows = rows_of(totals, parts)
    without = _p99s_without_ms(totals, list(parts.values()))
    told = (replace(row, p99_without_ms=p99) for row, p99 in zip(rows, without, strict=True))
    return tuple(sorted(told, key=_order))


def totals_of(cohorts: Summary) -> CohortTotals:
    """Return what a summary counts of each of its groups, taken to be distinct cohorts."""
    groups, total = len(cohorts.cohorts), cohorts.stages.index(TOTAL)
    mine = np.flatnonzero(cohorts.cell % len(cohorts.stages) == total)
    group = cohorts.cell[mine] // len(cohorts.stages)
    bucket = cohorts.bucket[mine].astype(np.int64)
    first, end = (int(bucket.min()), int(bucket.max()) + 1) if len(bucket) else (0, 1)
    at = group * np.int64(end - first) + (bucket - first)
    # Counts pass through float64: whole numbers, exact below 2^53.
    counts = np.bincount(at, cohorts.count[mine], groups * (end - first)).astype(np.int64)
    return CohortTotals(
        cohorts=cohorts.cohorts,
        requests=cohorts.requests,
        failed=cohorts.failed,
        first_bucket=first,
        counts=counts.reshape(groups, end - first),
        min_ms=cohorts.min_ms[:, total],
        max_ms=cohorts.max_ms[:, total],
    )


def _parts(totals: CohortTotals) -> Parts:
    values = dict(members_of(totals.cohorts))
    if max(len(cohort) for cohort in totals.cohorts) <= 2:
        values = {part: at for part, at in values.items() if part[0] != WHOLE}
    pairs: dict[tuple[tuple[str, str], tuple[str, str]], list[int]] = defaultdict(list)
    for at, cohort in enumerate(totals.cohorts):
        for pair in combinations(cohort, 2):
            pairs[pair].append(at)
    told = {
        (first[0] + PAIR + second[0], first[1] + PAIR + second[1]): at
        for (first, second), at in pairs.items()
        if len(at) < min(len(values[first]), len(values[second]))
    }
    return values | told


def _kept(totals: CohortTotals, parts: Parts) -> Parts:
    """Return the parts that get a row."""
    everything = gather(totals, [range(len(totals.cohorts))])
    slow, all_slow = slow_counts(totals, everything), slow_counts(everything, everything)[0]
    excess = slow / (all_slow or 1.0) - totals.requests / everything.requests[0]
    of_dimension: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for (dimension, value), at in parts.items():
        of_dimension[dimension].append((-float(excess[at].sum()), value))
    return {
        (dimension, value): parts[dimension, value]
        for dimension, found in of_dimension.items()
        for _, value in sorted(found)[: MOST_PAIRS if PAIR in dimension else MOST_VALUES]
    }


def _p99s_without_ms(totals: CohortTotals, parts: Sequence[Sequence[int]]) -> list[float | None]:
    """Return the p99 of the successes outside of each part; None where they are too few.

    Sketches subtract exactly. Extremes don't: they are those of the cohorts outside.
    """
    inside = gather(totals, parts)
    everything = gather(totals, [range(len(totals.cohorts))])
    slowest_first = np.argsort(-totals.max_ms, kind="stable")
    fastest_first = np.argsort(totals.min_ms, kind="stable")
    rest = replace(
        inside,
        requests=everything.requests - inside.requests,
        failed=everything.failed - inside.failed,
        counts=everything.counts - inside.counts,
        min_ms=_first_outside(totals.min_ms, fastest_first, parts, np.inf),
        max_ms=_first_outside(totals.max_ms, slowest_first, parts, -np.inf),
    )
    return p99s_ms(rest)


def _first_outside(
    values: NDArray[np.float64],
    order: NDArray[np.intp],
    parts: Sequence[Sequence[int]],
    none: float,
) -> NDArray[np.float64]:
    """Return, for each part, the first of the ordered values that is not of the part's cohorts."""
    found = np.full(len(parts), none)
    ordered = order.tolist()
    for number, part in enumerate(parts):
        members = set(part)
        outside = next((at for at in ordered if at not in members), None)
        if outside is not None:
            found[number] = values[outside]
    return found


def _order(row: CohortRow) -> tuple[float, int, str, str]:
    size = 2 if row.dimension == WHOLE else row.dimension.count(PAIR)
    excess, dimension, value = over_represented(row)
    return round(excess, 9), size, dimension, value
