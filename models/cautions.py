"""What a reader must know before trusting the numbers of an audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tailbudget.models.closed_loop import closed_loop
from tailbudget.models.cohort_split import CohortTotals, other_share_pct
from tailbudget.models.evidence import Evidence
from tailbudget.schemas.ledger import TOTAL_IN_SECONDS, is_quarantined, is_rejected
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary


def cautions(
    total: Summary, cohorts: CohortTotals, ledger: Mapping[str, int], slo: SloTarget | None
) -> tuple[str, ...]:
    """Return one sentence for each thing that limits what the figures say."""
    return tuple(
        text
        for texts in (
            _targets(slo),
            _units(total, ledger),
            _failures(total),
            left_out(ledger),
            _folded(cohorts),
        )
        for text in texts
    )


def load_cautions(evidence: Evidence) -> tuple[str, ...]:
    """Return one sentence for each thing about the load that limits what a report says."""
    text = closed_loop(evidence)
    return () if text is None else (text,)


def _targets(slo: SloTarget | None) -> Iterator[str]:
    if slo is None or not slo.items():
        yield "no target is set: nothing was judged"


def _units(total: Summary, ledger: Mapping[str, int]) -> Iterator[str]:
    rows = ledger.get(TOTAL_IN_SECONDS, 0)
    if rows:
        of = rows + int(total.requests[0])
        yield f"total is about 1/1000 of the stage sum in {rows}/{of} rows; looks like seconds"


def _failures(total: Summary) -> Iterator[str]:
    n, failed = int(total.requests[0]), int(total.failed[0])
    if failed:
        yield f"{failed:,} of {n:,} requests failed ({100 * failed / n:.3g} %)"


def left_out(ledger: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each kind of thing that is not in the figures."""
    outside = {
        reason: count
        for reason, count in sorted(ledger.items())
        if count and (is_rejected(reason) or is_quarantined(reason)) and reason != TOTAL_IN_SECONDS
    }
    if outside:
        each = ", ".join(f"{reason} {count:,}" for reason, count in outside.items())
        yield f"{sum(outside.values()):,} records are not in the figures: {each}"
    negative = ledger.get("missing.negative_stage", 0)
    if negative:
        yield f"{negative:,} negative stage value{'s' * (negative > 1)} left out as missing"
    clamped = ledger.get("clamped", 0)
    if clamped:
        yield f"{clamped:,} values lie outside of the sketch's range; their percentiles are bounds"


def _folded(cohorts: CohortTotals) -> Iterator[str]:
    share = other_share_pct(cohorts)
    if share is not None:
        yield f"{share:.3g} % of the requests are in cohorts beyond the limit, shown as (other)"
