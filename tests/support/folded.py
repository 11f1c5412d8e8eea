"""Summaries with fewer cohorts, as a limit of cohorts makes them."""

from __future__ import annotations

from collections.abc import Collection

from tailbudget.models.select import renamed
from tailbudget.schemas.cohorts import OTHER, Cohort
from tailbudget.schemas.summary import Summary


def fold_cohorts(summary: Summary, wanted: Collection[Cohort]) -> Summary:
    """Put the cohorts that are not wanted together, as the cohort OTHER."""
    return renamed(summary, [one if one in wanted else OTHER for one in summary.cohorts])
