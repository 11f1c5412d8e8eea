"""The measuring sections of a report, put together by hand from an `Evidence`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tailbudget.models.evidence import Evidence
from tailbudget.models.ranks import ranks
from tailbudget.models.snapshot import snapshot, verdict
from tailbudget.models.tail import slow_fast
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import Cause, CauseName
from tailbudget.schemas.sections import ColdStart, StageRole, StageRow
from tailbudget.schemas.slo import QUANTILES, SloTarget
from tailbudget.schemas.verdicts import TailRow

NOT_LOOKED_AT = ColdStart((), 0, None, None, "not_computable", (), "no deploys are known")


def found_of(
    evidence: Evidence,
    slo: SloTarget | None = None,
    *,
    roles: Mapping[str, StageRole] | None = None,
    cold_start: ColdStart = NOT_LOOKED_AT,
) -> Findings:
    """Return findings without shape and cohort rows, which nothing here reads."""
    table = slow_fast(evidence.total)
    rows = snapshot(evidence.total, slo)
    return Findings(
        verdict=verdict(rows),
        end_to_end=rows,
        stages=tuple(_row(evidence, row, roles or {}) for row in table.rows) if table else (),
        tail_driver=table.driver if table else None,
        shape=(),
        shape_bands=(),
        collinear=(),
        per_unit=(),
        cohorts=(),
        cold_start=cold_start,
        slo=slo,
        slow_request_threshold="p95",
    )


def cause_of(
    name: CauseName,
    stage: str = "",
    *,
    score: float = 0.9,
    covariate: str = "",
    cohort: str = "",
    missing: Sequence[str] = (),
) -> Cause:
    """Return a cause without sentences."""
    return Cause(name, stage, score, (), (), tuple(missing), cohort, covariate)


def _row(evidence: Evidence, row: TailRow, roles: Mapping[str, StageRole]) -> StageRow:
    order = ranks(evidence.total, row.stage)
    p50, p95, p99 = (order.quantile_ms(q) for q in QUANTILES.values())
    return StageRow(
        stage=row.stage,
        n=order.n,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        mean_fast_ms=row.mean_fast_ms,
        mean_slow_ms=row.mean_slow_ms,
        delta_ms=row.delta_ms,
        tail_share_pct=row.tail_share_pct,
        role=roles.get(row.stage, StageRole.STAGE),
    )
