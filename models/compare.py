"""A log against its baseline: which percentiles, stages and cohorts changed, and why the p99 did.

Percentiles of the total are of all requests, failures slower than all others; those of stages and
cohorts are of the successful ones, as in the rest of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from tailbudget.models.decompose import change_ms, decompose
from tailbudget.models.evidence import Evidence
from tailbudget.models.quantile_test import difference_interval_ms, holm, p_value
from tailbudget.models.sides import (
    Side,
    all_requests,
    answered,
    cohort_sides,
    records_a_request,
)
from tailbudget.models.sketch import RELATIVE_ERROR
from tailbudget.models.verdict_of_change import verdict_of
from tailbudget.schemas.comparison import Change, Comparison
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.summary import FAILED, TOTAL

LEVEL: Final = 0.05
"""Chance that anything at all is said to have changed where nothing did."""

_KINDS: Final = ("total", "stage", "cohort")
_EACH: Final = LEVEL / len(_KINDS)
"""Each kind has its own share of it, so that many cohorts do not blunt the test of the total."""


@dataclass(frozen=True, slots=True)
class _Thing:
    """One thing to compare: its kind, its name, and both sides."""

    of: str
    name: str
    before: Side
    now: Side


def compare(before: Evidence, now: Evidence) -> Comparison:
    """Return what changed between a baseline and now."""
    sides = all_requests(before), all_requests(now)
    rows = [
        *_changes([_Thing("total", "", *sides)]),
        *_largest_first(_changes(list(_stages(before, now)))),
        *_largest_first(_changes(list(_cohorts(before, now)))),
    ]
    p99_change_ms = change_ms(*sides)
    parts = decompose(before, now)
    verdict, note = verdict_of(rows[: len(QUANTILES)], sides, parts)
    return Comparison(
        before_n=sides[0].n,
        now_n=sides[1].n,
        changes=tuple(rows),
        p99_change_ms=p99_change_ms,
        parts=parts,
        verdict=verdict,
        note=note,
    )


def _stages(before: Evidence, now: Evidence) -> Iterator[_Thing]:
    old, new = records_a_request(before.total), records_a_request(now.total)
    names = dict.fromkeys((*before.total.stages, *now.total.stages))
    for name in names:
        if name not in {TOTAL, FAILED}:
            yield _Thing(
                "stage", name, answered(before.total, name, old), answered(now.total, name, new)
            )


def _cohorts(before: Evidence, now: Evidence) -> Iterator[_Thing]:
    old = cohort_sides(before.cohorts, records_a_request(before.total))
    new = cohort_sides(now.cohorts, records_a_request(now.total))
    nothing = answered(replace(before.total, cohorts=()))
    for pair in dict.fromkeys((*old, *new)):
        name = "=".join(pair)
        yield _Thing("cohort", name, old.get(pair, nothing), new.get(pair, nothing))


def _changes(things: Sequence[_Thing]) -> list[Change]:
    """Return a row for each percentile of each thing; the tests are corrected for their number."""
    rows = [_change(thing, name, q) for thing in things for name, q in QUANTILES.items()]
    holds = holm([row.p_value for row in rows], _EACH)
    return [
        replace(row, changed=None if held is None else held and _is_resolved(row))
        for row, held in zip(rows, holds, strict=True)
    ]


def _change(thing: _Thing, percentile: str, quantile: Fraction) -> Change:
    before_ms, now_ms = (
        side.quantile_ms(quantile) if side.measures(quantile) else None
        for side in (thing.before, thing.now)
    )
    return Change(
        of=thing.of,
        name=thing.name,
        percentile=percentile,
        before_ms=before_ms,
        now_ms=now_ms,
        delta_ms=None if before_ms is None or now_ms is None else now_ms - before_ms,
        interval_ms=difference_interval_ms(thing.before, thing.now, quantile),
        p_value=p_value(thing.before, thing.now, quantile),
        changed=None,
    )


def _is_resolved(row: Change) -> bool:
    """Tell whether a difference is more than the sketch's rounding of both ends."""
    if row.delta_ms is None or row.before_ms is None or row.now_ms is None:
        return True  # one of them is a failure
    return abs(row.delta_ms) > RELATIVE_ERROR * (row.before_ms + row.now_ms)


def _largest_first(rows: Iterable[Change]) -> list[Change]:
    return sorted(rows, key=lambda row: (-abs(row.delta_ms or 0.0), row.name, row.percentile))
