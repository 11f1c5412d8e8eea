"""Parts of rolling audits, as ClickHouse keeps them."""

from __future__ import annotations

from tailbudget.schemas.audit_rows import AuditOptimizationRow

FIX = AuditOptimizationRow(
    fix="more_replicas",
    text="Add replicas",
    cause="contention",
    p99_saved_ms=80.0,
    saved_low_ms=60.0,
    saved_high_ms=95.0,
    hours=4.0,
    ms_per_hour=20.0,
    quality_risk="none",
    reversible=True,
    horizon="short",
)
