"""Audit a span of requests: everything that its sums can say, in one answer.

The stream audits its windows and `tailbudget audit` a file by this same code.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tailbudget.models.cautions import cautions
from tailbudget.models.cohort_split import CohortTotals, cohort_split
from tailbudget.models.instants import rfc3339
from tailbudget.models.snapshot import snapshot, verdict
from tailbudget.models.stage_table import light_stage_table
from tailbudget.models.tail import SLOW
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import (
    Audit,
    Provenance,
)


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
    table = light_stage_table(total, slow_request_threshold)
    ledger = Counter[str]()
    for (_, reason), count in total.ledger.items():
        ledger[reason] += count
    return Audit(
        verdict=verdict(rows),
        provenance=replace(
            provenance_of(total, slo, start_ns=start_ns, end_ns=end_ns),
            slow_request_threshold=slow_request_threshold,
        ),
        end_to_end=rows,
        stages=table.rows,
        tail_driver=table.driver,
        cohorts=cohort_split(cohorts),
        ledger=dict(sorted(ledger.items())),
        warnings=(*cautions(total, cohorts, ledger, slo), *table.notes),
    )


def provenance_of(
    total: Summary, slo: SloTarget | None, *, start_ns: int, end_ns: int
) -> Provenance:
    """Return what was audited, of a summary of one group or of none."""
    n, failed = int(total.requests.sum()), int(total.failed.sum())
    return Provenance(
        service=total.service,
        start=rfc3339(start_ns),
        end=rfc3339(end_ns),
        n=n,
        n_ok=n - failed,
        n_failed=failed,
        slo=slo,
    )
