"""The number of cohorts is bounded; those in use keep their place."""

from __future__ import annotations

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
