"""All requests but those of one cohort."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.select import take
from tailbudget.models.sketch import stage_counts
from tailbudget.schemas.cohorts import Cohort, cohort_text
from tailbudget.schemas.summary import TOTAL


def without_cohort(evidence: Evidence, name: str) -> NDArray[np.int64] | None:
    """Return the sketch [BUCKETS] of the total of the requests outside of a cohort.

    Args:
        evidence: what was measured.
        name: "dimension=value", "first+second=one+other", or a whole cohort's canonical text.

    Returns:
        None when no cohort has that name, or every one has.
    """
    cohorts = evidence.cohorts
    inside = [_named(cohort, name) for cohort in cohorts.cohorts]
    if not name or not any(inside) or all(inside):
        return None
    outside = np.flatnonzero(~np.array(inside))
    return stage_counts(take(cohorts, outside, {}), TOTAL)


def _named(cohort: Cohort, name: str) -> bool:
    if name in (cohort_text(cohort), *(f"{key}={value}" for key, value in cohort)):
        return True
    names, _, values = name.removeprefix("cohort=").partition("=")
    if name.startswith("cohort="):
        return cohort_text(cohort) == name.removeprefix("cohort=")
    pairs = {(f"{a}+{b}", f"{x}+{y}") for a, x in cohort for b, y in cohort if a != b}
    return (names, values) in pairs
