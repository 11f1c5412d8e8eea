"""The number of cohorts is bounded; those in use keep their place."""

from __future__ import annotations

import numpy as np
from random_records import random_columns

from tailbudget.models.columns import take
from tailbudget.schemas.cohorts import OTHER, Cohort
from tailbudget.streams.cohort_limit import IDLE_NS, CohortLimit


def cohort(name: str) -> Cohort:
    return (("route", name),)


def test_cohorts_beyond_the_limit_become_other() -> None:
    """The first two of three cohorts are kept, however often the third comes."""
    limit = CohortLimit(2)
    a, b, c = map(cohort, "abc")
    assert limit.admit([a, b, c], 0) == (a, b, OTHER)
    assert limit.admit([c, a], 1) == (OTHER, a)


def test_an_idle_cohort_makes_room() -> None:
    """A cohort that was not seen for an hour gives its place to a new one, and may come back."""
    limit = CohortLimit(2)
    a, b, c = map(cohort, "abc")
    limit.admit([a, b], 0)
    assert limit.admit([b, c], IDLE_NS + 1) == (b, c)
    assert limit.admit([a], IDLE_NS + 2) == (OTHER,)


def test_a_service_with_one_cohort_has_no_other() -> None:
    """A service without dimensions has the one cohort of no pairs."""
    assert CohortLimit(1).admit([()], 0) == ((),)


def test_which_cohorts_are_kept_does_not_hang_on_the_batches() -> None:
    """Those that come first in the records stay, in one batch as in many."""
    names = [f"route-{number}" for number in range(8)]
    columns = random_columns(3, 200, routes=names)
    at_once = CohortLimit(5).limited(columns)
    limit = CohortLimit(5)
    parts = [
        limit.limited(take(columns, np.arange(len(columns)) // 7 == part)) for part in range(29)
    ]
    cohort_of = [part.cohorts[code] for part in parts for code in part.cohort.tolist()]
    assert cohort_of == [at_once.cohorts[code] for code in at_once.cohort.tolist()]
    assert len(set(cohort_of)) == 6
    assert OTHER in cohort_of
