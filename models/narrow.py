"""The evidence of some cohorts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tailbudget.models.evidence import REPORT_SAMPLE, Evidence
from tailbudget.models.select import collapse, take
from tailbudget.schemas.cohorts import NONE, OTHER, Cohort
from tailbudget.schemas.summary import Summary


def narrowed(evidence: Evidence, wanted: Mapping[str, str]) -> Evidence:
    """Return the evidence of the cohorts that have these values; without any, all of it.

    What is kept of all cohorts together is left out: how latency went over time, and by instance.
    The ledger stays that of the service, for a record that was refused has no cohort.

    Args:
        evidence: of a service.
        wanted: value of each dimension; `NONE` for requests that do not carry it, and the value
            of `OTHER` for those of cohorts that are not kept apart.
    """
    if not wanted:
        return evidence
    cohorts = _taken(evidence.cohorts, wanted)
    warm = None if evidence.warm_cohorts is None else _taken(evidence.warm_cohorts, wanted)
    return replace(
        evidence,
        total=replace(collapse(cohorts, keep=REPORT_SAMPLE), ledger=evidence.total.ledger),
        cohorts=cohorts,
        timeline=take(evidence.timeline, np.zeros(0, np.intp), {}),
        warm=None if warm is None else collapse(warm, keep=REPORT_SAMPLE),
        instances=None,
        warm_cohorts=warm,
    )


def _taken(cohorts: Summary, wanted: Mapping[str, str]) -> Summary:
    inside = [_has(cohort, wanted) for cohort in cohorts.cohorts]
    return take(cohorts, np.flatnonzero(inside), cohorts.ledger)


def _has(cohort: Cohort, wanted: Mapping[str, str]) -> bool:
    values = dict(cohort)
    otherwise = OTHER[0][1] if cohort == OTHER else NONE
    return all(values.get(name, otherwise) == value for name, value in wanted.items())
