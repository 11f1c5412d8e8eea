"""Section 10: fix the tail, negotiate the SLO anew, or add capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.proposals import LoadPoint, Recommendation, SupportedSlo
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.clean import bare, capital
from tailbudget.sinks.report.document import (
    Block,
    Mark,
    Name,
    Paragraph,
    Section,
    Span,
    Table,
    columns,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import count, insufficient, ms, number, pct

CHOICES: Final = {
    "keep": "keep the SLO and the service as they are",
    "fix_tail": "fix the tail",
    "renegotiate_slo": "re-negotiate the SLO",
    "add_capacity": "add capacity",
    "measure_first": "measure first",
}

_SUPPORTED: Final = "Percentile | Measured > | Supported > | Margin > | Confidence > | n >"
_BUDGETS: Final = "Stage | P99 budget > | Share >"
_LOAD: Final = "Load up to > | In flight > | n > | P99 >"


def recommendation(audit: Audit) -> Section:
    """Return the choice with its numbers."""
    title = "SLO and capacity"
    if audit.recommendation is None:
        why = capital(bare(audit.refused)) or "Nobody asked"
        said = paragraph(f"Nothing is recommended. {why}.")
        return Section("recommendation", title, (said,))
    return Section("recommendation", title, tuple(_blocks(audit.recommendation)))


def _blocks(advice: Recommendation) -> Iterator[Block]:
    choice = CHOICES.get(advice.choice, advice.choice)
    yield Paragraph(say("Recommendation: ", Mark(choice), f". {capital(advice.reason)}"))
    yield paragraph("First step: ", f"{bare(advice.first_step) or 'nothing to do'}.")
    if advice.mitigation != advice.first_step:
        yield paragraph("Until then: ", f"{bare(advice.mitigation) or 'no mitigation is known'}.")
    if advice.supported:
        rows = tuple(say(*_supported(row)) for row in advice.supported)
        yield Table("The tightest SLO that the profile supports", columns(_SUPPORTED), rows)
    if advice.budgets:
        budgets = tuple(
            say(Name(part.stage), ms(part.p99_ms), pct(part.share_pct)) for part in advice.budgets
        )
        yield Table("How that P99 divides over the stages", columns(_BUDGETS), budgets)
    if advice.load:
        points = tuple(say(*_point(point)) for point in advice.load)
        yield Table("Latency against load", columns(_LOAD), points)


def _supported(row: SupportedSlo) -> Iterator[Span]:
    few = insufficient(row.n)
    yield row.percentile.upper()
    yield ms(row.measured_ms)
    yield ms(row.supported_ms, few)
    yield pct(row.margin_pct)
    yield pct(row.confidence_pct)
    yield count(row.n)


def _point(point: LoadPoint) -> Iterator[Span]:
    yield f"{number(point.load_rps)} requests/s"
    yield number(point.in_flight)
    yield count(point.n)
    yield ms(point.p99_ms, insufficient(point.n))
