"""Audits of an evidence whose causes are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tailbudget.models.evidence import Evidence
from tailbudget.models.optimizations import optimizations
from tailbudget.models.recommendation import recommendation
from tailbudget.models.report import Options, findings, report
from tailbudget.schemas.catalogue import Catalogue, load_catalogue
from tailbudget.schemas.proposals import Cause
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Audit


def audit_of(
    evidence: Evidence,
    slo: SloTarget | None,
    causes: Sequence[Cause],
    catalogue: Catalogue | None = None,
) -> Audit:
    """Return the report of some evidence with these causes in place of those it tells itself."""
    options = Options(catalogue=catalogue or load_catalogue(), slo=slo)
    found, _ = findings(evidence, options)
    fixes = optimizations(evidence, found, causes, options.catalogue)
    return replace(
        report(evidence, options),
        causes=tuple(causes),
        optimizations=fixes,
        recommendation=recommendation(evidence, found, causes, fixes),
        refused="",
    )
