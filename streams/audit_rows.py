"""From an audit to the rows that ClickHouse keeps of it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import orjson

from tailbudget.models.audit import as_report
from tailbudget.models.snapshot import leading
from tailbudget.schemas.audit_rows import AuditCohortRow, AuditRow, AuditStageRow
from tailbudget.schemas.sections import CohortRow, StageRow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import SUCCESS, Audit

MAX_COHORTS = 200
"""Cohorts kept of a rolling audit, the most over-represented in the tail first; SQL has all."""


def audit_row(audit: Audit, *, window_s: int, end_ns: int) -> AuditRow:
    """Return the row of an audit with its stages and cohorts."""
    all_rows = leading(audit.end_to_end)
    success = {row.percentile: row for row in audit.end_to_end if row.basis == SUCCESS}
    slo = audit.provenance.slo or SloTarget()
    return AuditRow(
        service=audit.provenance.service,
        window_s=window_s,
        end_ns=end_ns,
        version=audit.provenance.n,
        verdict=str(audit.verdict),
        requests=audit.provenance.n,
        failed=audit.provenance.n_failed,
        p50_ms=all_rows["p50"].measured_ms,
        p95_ms=all_rows["p95"].measured_ms,
        p99_ms=all_rows["p99"].measured_ms,
        max_ms=all_rows["max"].measured_ms or success["max"].measured_ms,
        slo_p50_ms=slo.p50_ms,
        slo_p95_ms=slo.p95_ms,
        slo_p99_ms=slo.p99_ms,
        tail_driver=audit.tail_driver.stage if audit.tail_driver else "",
        payload=orjson.dumps(as_report(audit)).decode(),
        stages=tuple(AuditStageRow(**_kept(row, AuditStageRow)) for row in audit.stages),
        cohorts=tuple(
            AuditCohortRow(**_kept(row, AuditCohortRow)) for row in audit.cohorts[:MAX_COHORTS]
        ),
    )


def _kept(row: StageRow | CohortRow, kind: type[AuditStageRow | AuditCohortRow]) -> dict[str, Any]:
    """Return the fields that the table has a column for; the payload has all."""
    return {field.name: getattr(row, field.name) for field in fields(kind)}
