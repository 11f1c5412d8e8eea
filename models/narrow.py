"""The evidence of some cohorts alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import REPORT_SAMPLE, Evidence
from tailbudget.models.select import collapse, take
from tailbudget.schemas.cohorts import NONE, OTHER, Cohort
from tailbudget.schemas.summary import Sample, Summary


def narrowed(evidence: Evidence, wanted: Mapping[str, str]) -> Evidence:
    """Return the evidence of the cohorts that have these values; without any, all of it.

    The timeline stays that of the service, for its load is what all cohorts bring; so does the
    ledger, for a record that was refused has no cohort. What is kept by instance is left out.

    Args:
        evidence: of a service.
        wanted: value of each dimension; `NONE` for requests that do not carry it, and the value
            of `OTHER` for those of cohorts that are not kept apart.
    """
    if not wanted:
        return evidence
    cohorts = _taken(evidence.cohorts, wanted)
    warm_cohorts = None
    if evidence.warm_cohorts is not None:
        warm_cohorts = _taken(evidence.warm_cohorts, wanted)
    warm = None
    if warm_cohorts is not None and evidence.warm is not None:
        warm = _together(warm_cohorts, evidence.warm, _inside(evidence, evidence.warm, wanted))
    total = _together(cohorts, evidence.total, _inside(evidence, evidence.total, wanted))
    return replace(
        evidence,
        total=replace(total, ledger=evidence.total.ledger),
        cohorts=cohorts,
        warm=warm,
        instances=None,
        warm_cohorts=warm_cohorts,
    )


def _taken(cohorts: Summary, wanted: Mapping[str, str]) -> Summary:
    inside = [_has(cohort, wanted) for cohort in cohorts.cohorts]
    return take(cohorts, np.flatnonzero(inside), cohorts.ledger)


def _inside(evidence: Evidence, whole: Summary, wanted: Mapping[str, str]) -> NDArray[np.intp]:
    """Return which of the sampled requests of all cohorts are of those wanted."""
    cohorts = (evidence.cohort_of.get(key) for key in whole.sample.hash.tolist())
    inside = [cohort is not None and _has(cohort, wanted) for cohort in cohorts]
    return np.flatnonzero(inside)


def _together(cohorts: Summary, whole: Summary, inside: NDArray[np.intp]) -> Summary:
    """Return the cohorts as one group, with the larger of two uniform samples of them.

    Each cohort keeps a sample; and of the larger one of all, those requests that are wanted are
    just as uniform, and more unless the cohorts are rare.
    """
    one = collapse(cohorts, keep=REPORT_SAMPLE)
    same = (one.stages, one.covariates) == (whole.stages, whole.covariates)
    if not same or len(one.pane_ns) != 1 or len(inside) <= len(one.sample.hash):
        return one
    sample = whole.sample
    kept = Sample(
        tau=sample.tau,
        group=sample.group[inside],
        hash=sample.hash[inside],
        ids=tuple(sample.ids[at] for at in inside.tolist()),
        ts_ns=sample.ts_ns[inside],
        slowest=sample.slowest[inside],
        values=sample.values[inside],
    )
    return replace(one, sample=kept)


def _has(cohort: Cohort, wanted: Mapping[str, str]) -> bool:
    values = dict(cohort)
    otherwise = OTHER[0][1] if cohort == OTHER else NONE
    return all(values.get(name, otherwise) == value for name, value in wanted.items())
