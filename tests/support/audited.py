"""Whole audits, put together by hand from an `Evidence`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from found import found_of

from tailbudget.models.audit import audit
from tailbudget.models.cohort_split import CohortTotals
from tailbudget.models.cohort_sums import CohortSums
from tailbudget.models.evidence import Evidence
from tailbudget.models.optimizations import optimizations
from tailbudget.models.recommendation import recommendation
from tailbudget.models.regression import fit
from tailbudget.schemas.catalogue import Catalogue, load_catalogue
from tailbudget.schemas.proposals import Cause
from tailbudget.schemas.sections import ShapeRow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import TOTAL
from tailbudget.schemas.verdicts import Audit


def audit_of(
    evidence: Evidence,
    slo: SloTarget | None,
    causes: Sequence[Cause],
    catalogue: Catalogue | None = None,
) -> Audit:
    """Return the audit of some evidence, its causes given."""
    found = found_of(evidence, slo)
    fixes = optimizations(evidence, found, causes, catalogue or load_catalogue())
    plain = audit(
        evidence.total,
        _totals(evidence),
        slo=slo,
        start_ns=evidence.start_ns,
        end_ns=evidence.end_ns,
    )
    return replace(
        plain,
        shape=_shape(evidence),
        cold_start=found.cold_start,
        causes=tuple(causes),
        optimizations=fixes,
        recommendation=recommendation(evidence, found, causes, fixes),
    )


def _totals(evidence: Evidence) -> CohortTotals:
    sums = CohortSums()
    sums.add(0, evidence.cohorts, slice(0, len(evidence.cohorts.cohorts)))
    return sums.totals()


def _shape(evidence: Evidence) -> tuple[ShapeRow, ...]:
    fits = [(name, fit(evidence.total, TOTAL, name)) for name in evidence.total.covariates]
    return tuple(
        ShapeRow(TOTAL, name, line.n, line.r2, line.slope, line.intercept)
        for name, line in fits
        if line is not None
    )
