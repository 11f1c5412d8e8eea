"""Audit a span of requests: everything that its sums can say, in one answer.

The stream audits its windows and `tailbudget audit` a file by this same code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from tailbudget.models.cautions import cautions
from tailbudget.models.cohort_split import CohortTotals, cohort_split
from tailbudget.models.ranks import ranks
from tailbudget.models.rfc3339 import rfc3339
from tailbudget.models.snapshot import snapshot, verdict
from tailbudget.models.tail import SLOW, slow_band, slow_fast
from tailbudget.schemas.sections import StageRow
from tailbudget.schemas.slo import QUANTILES, SloTarget
from tailbudget.schemas.summary import FAILED, TOTAL, Summary
from tailbudget.schemas.verdicts import (
    AUDIT_SCHEMA,
    Audit,
    Percentile,
    Provenance,
    TailTable,
)

_INTERNAL: Final = ("n", "over")  # of a Percentile; the report has them in other places


def audit(
    total: Summary,
    cohorts: CohortTotals,
    *,
    slo: SloTarget | None,
    start_ns: int,
    end_ns: int,
    slow_request_threshold: str | float = SLOW[0],
) -> Audit:
    """Return the audit of a span.

    Args:
        total: one group: the whole span, all cohorts (`Window.total`).
        cohorts: the same requests by cohort (`Window.cohorts`).
        slo: what was promised; None judges nothing.
        start_ns: requests count from here.
        end_ns: requests count until before here.
        slow_request_threshold: "p95", "p99" or milliseconds: where slow begins.

    Raises:
        ValueError: `total` has not exactly one group, or the threshold names no percentile.
    """
    rows = snapshot(total, slo)
    table = slow_fast(total, slow_band(slow_request_threshold))
    ledger = Counter[str]()
    for (_, reason), count in total.ledger.items():
        ledger[reason] += count
    return Audit(
        verdict=verdict(rows),
        provenance=_provenance(total, slo, start_ns, end_ns),
        end_to_end=rows,
        stages=_stages(total, table),
        tail_driver=table.driver if table else None,
        cohorts=cohort_split(cohorts),
        ledger=dict(sorted(ledger.items())),
        warnings=cautions(total, cohorts, ledger, slo),
    )


def as_report(audit: Audit) -> dict[str, Any]:
    """Return the JSON report; what was not computed is null or an empty list."""
    return {
        "schema": AUDIT_SCHEMA,
        "verdict": str(audit.verdict),
        "provenance": asdict(audit.provenance)
        | {"assumptions": list(audit.provenance.assumptions)},
        "end_to_end": [_percentile(row) for row in audit.end_to_end],
        "stages": [asdict(row) for row in audit.stages],
        "tail_driver": asdict(audit.tail_driver) if audit.tail_driver else None,
        "shape": [asdict(row) for row in audit.shape],
        "cohorts": [asdict(row) for row in audit.cohorts],
        "cold_start": None,
        "causes": [],
        "optimizations": [],
        "recommendation": None,
        "ledger": dict(audit.ledger),
        "warnings": list(audit.warnings),
    }


def _percentile(row: Percentile) -> Mapping[str, Any]:
    named = {key: value for key, value in asdict(row).items() if key not in _INTERNAL}
    return named | {"status": None if row.status is None else str(row.status)}


def _provenance(total: Summary, slo: SloTarget | None, start_ns: int, end_ns: int) -> Provenance:
    n, failed = int(total.requests[0]), int(total.failed[0])
    return Provenance(
        service=total.service,
        start=rfc3339(start_ns),
        end=rfc3339(end_ns),
        n=n,
        n_ok=n - failed,
        n_failed=failed,
        slo=slo,
    )


def _stages(total: Summary, table: TailTable | None) -> tuple[StageRow, ...]:
    tail = {row.stage: row for row in table.rows} if table else {}
    rows = []
    for stage in total.stages:
        order = ranks(total, stage)
        if stage in (TOTAL, FAILED) or not order.n:
            continue
        row = tail.get(stage)
        p50, p95, p99 = (order.quantile_ms(q) for q in QUANTILES.values())
        rows.append(
            StageRow(
                stage=stage,
                n=order.n,
                p50_ms=p50,
                p95_ms=p95,
                p99_ms=p99,
                mean_fast_ms=row.mean_fast_ms if row else None,
                mean_slow_ms=row.mean_slow_ms if row else None,
                delta_ms=row.delta_ms if row else None,
                tail_share_pct=row.tail_share_pct if row else None,
            )
        )
    return tuple(rows)
