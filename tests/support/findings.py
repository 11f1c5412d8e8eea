"""Findings of an evidence, as a report has them."""

from __future__ import annotations

from tailbudget.models.evidence import Evidence
from tailbudget.models.report import Options
from tailbudget.models.report import findings as measured
from tailbudget.schemas.catalogue import load_catalogue
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.slo import SloTarget


def findings(
    evidence: Evidence, slo: SloTarget | None = None, threshold: str | float = "p95"
) -> Findings:
    """Return the measuring sections of an evidence that has requests."""
    options = Options(catalogue=load_catalogue(), slo=slo, slow_request_threshold=threshold)
    return measured(evidence, options)[0]
