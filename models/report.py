"""The whole report: what was measured, why it is so, and what to do, from one evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tailbudget.models.audit import audit_of, warnings_of
from tailbudget.models.causes import causes
from tailbudget.models.cohort_table import cohort_table
from tailbudget.models.cold_start import cold_start
from tailbudget.models.compare import compare
from tailbudget.models.evidence import Evidence
from tailbudget.models.optimizations import optimizations
from tailbudget.models.plots import plots
from tailbudget.models.recommendation import recommendation
from tailbudget.models.refusal import may_recommend, refusal
from tailbudget.models.shape_table import shape_table
from tailbudget.models.snapshot import snapshot, verdict
from tailbudget.models.stage_table import stage_table
from tailbudget.schemas.catalogue import Catalogue
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Audit
