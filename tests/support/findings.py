"""Findings of an evidence, by the light functions that were there first."""

from __future__ import annotations

from tailbudget.models.audit import audit
from tailbudget.models.cohort_sums import CohortSums
from tailbudget.models.cold_start import cold_start
from tailbudget.models.evidence import Evidence
from tailbudget.models.regression import fit
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.sections import ShapeRow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import FAILED


def findings(
    evidence: Evidence, slo: SloTarget | None = None, threshold: str | float = "p95"
) -> Findings:
    """Return the measuring sections of an evidence that has requests."""
    sums = CohortSums()
    sums.add(0, evidence.cohorts, slice(0, len(evidence.cohorts.pane_ns)))
    said = audit(
        evidence.total,
        sums.totals(),
        slo=slo,
        start_ns=evidence.start_ns,
        end_ns=evidence.end_ns,
        slow_request_threshold=threshold,
    )
    return Findings(
        verdict=said.verdict,
        end_to_end=said.end_to_end,
        stages=said.stages,
        tail_driver=said.tail_driver,
        shape=_shape(evidence),
        shape_bands=(),
        collinear=(),
        per_unit=(),
        cohorts=said.cohorts,
        cold_start=cold_start(evidence, slo),
        slo=slo,
        slow_request_threshold=threshold,
    )


def _shape(evidence: Evidence) -> tuple[ShapeRow, ...]:
    total = evidence.total
    fits = (
        fit(total, stage, covariate)
        for stage in total.stages
        if stage != FAILED
        for covariate in total.covariates
    )
    names = ((s, c) for s in total.stages if s != FAILED for c in total.covariates)
    return tuple(
        ShapeRow(stage, covariate, line.n, line.r2, line.slope, line.intercept)
        for (stage, covariate), line in zip(names, fits, strict=True)
        if line is not None
    )
