"""From an audit to the rows that ClickHouse keeps of it."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

import orjson

from tailbudget.schemas.audit_rows import (
    FULL,
    AuditCauseRow,
    AuditCohortRow,
    AuditOptimizationRow,
    AuditRow,
    AuditShapeRow,
    AuditStageRow,
)
from tailbudget.schemas.proposals import Optimization
from tailbudget.schemas.sections import StageRow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import SUCCESS, Audit, leading
from tailbudget.sinks.report.json_report import as_json

_T = TypeVar("_T", AuditCauseRow, AuditCohortRow, AuditShapeRow)

MAX_COHORTS = 200
"""Cohorts kept of a rolling audit, the most over-represented in the tail first; SQL has all."""


def audit_row(audit: Audit, *, window_s: int, end_ns: int, drawn_ns: int | None = None) -> AuditRow:
    """Return the row of an audit with its parts.

    Args:
        audit: the audit.
        window_s: length of its window.
        end_ns: where it ends.
        drawn_ns: when it was drawn, if it is the whole report; None for a live audit, of which
            the one with the most requests counts.
    """
    all_rows = leading(audit.end_to_end)
    success = {row.percentile: row for row in audit.end_to_end if row.basis == SUCCESS}
    slo = audit.provenance.slo or SloTarget()
    return AuditRow(
        service=audit.provenance.service,
        window_s=window_s,
        end_ns=end_ns,
        version=audit.provenance.n if drawn_ns is None else FULL + drawn_ns,
        verdict=str(audit.verdict),
        requests=audit.provenance.n,
        failed=audit.provenance.n_failed or 0,
        p50_ms=all_rows["p50"].measured_ms,
        p95_ms=all_rows["p95"].measured_ms,
        p99_ms=all_rows["p99"].measured_ms,
        max_ms=all_rows["max"].measured_ms or success["max"].measured_ms,
        slo_p50_ms=slo.p50_ms,
        slo_p95_ms=slo.p95_ms,
        slo_p99_ms=slo.p99_ms,
        tail_driver=audit.tail_driver.stage if audit.tail_driver else "",
        payload=orjson.dumps(as_json(audit)).decode(),
        stages=tuple(map(_stage, audit.stages)),
        cohorts=tuple(_kept(row, AuditCohortRow) for row in audit.cohorts[:MAX_COHORTS]),
        shape=tuple(_kept(row, AuditShapeRow) for row in audit.shape),
        causes=tuple(_kept(row, AuditCauseRow) for row in audit.causes),
        optimizations=tuple(map(_optimization, audit.optimizations)),
    )


def _stage(row: StageRow) -> AuditStageRow:
    low, high = row.delta_interval_ms or (None, None)
    names = {field.name for field in fields(AuditStageRow)} - {"delta_low_ms", "delta_high_ms"}
    kept = {name: getattr(row, name) for name in names}
    return AuditStageRow(**kept, delta_low_ms=low, delta_high_ms=high)


def _optimization(row: Optimization) -> AuditOptimizationRow:
    low, high = row.interval_ms or (None, None)
    return AuditOptimizationRow(
        fix=row.key or row.fix,
        text=row.fix,
        cause=str(row.cause),
        p99_saved_ms=row.p99_saved_ms,
        saved_low_ms=low,
        saved_high_ms=high,
        hours=row.hours,
        ms_per_hour=row.ms_per_hour,
        quality_risk=row.quality_risk,
        reversible=row.reversible,
        horizon=row.horizon,
    )


def _kept(row: object, kind: type[_T]) -> _T:
    """Return the fields that the table has a column for; the payload has all."""
    return kind(**{field.name: getattr(row, field.name) for field in fields(kind)})
