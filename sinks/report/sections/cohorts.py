"""Section 6: who is slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.sections import CohortRow
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.clean import clean_name
from tailbudget.sinks.report.document import (
    Block,
    Line,
    Name,
    Paragraph,
    Section,
    Span,
    Table,
    columns,
    cut,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import (
    count,
    insufficient,
    ms,
    not_measured,
    number,
    pct,
    signed_ms,
)

LIFT: Final = 2.0
"""A cohort stands out when its share of slow requests is this many times its share of all."""

_WHOLE: Final = "cohort"
_COLUMNS: Final = (
    "Cohort | n > | P99 > | Against all > | Share of slow > | Share of traffic >"
    " | P99 of the rest >"
)


def cohorts(audit: Audit) -> Section:
    """Return the cohorts, the most over-represented among slow requests first."""
    if not audit.cohorts:
        said = paragraph("Not measured: no cohort dimension is known.")
        return Section("cohorts", "Cohorts", (said,))
    rows, more = cut(tuple(say(*_cells(row)) for row in audit.cohorts), "cohorts")
    table = Table(
        "Cohorts, the most over-represented in slow requests first", columns(_COLUMNS), rows
    )
    blocks: tuple[Block, ...] = (Paragraph(_sentence(worst(audit))), table, *more)
    return Section("cohorts", "Cohorts", blocks)


def worst(audit: Audit) -> CohortRow | None:
    """Return the most over-represented cohort; None when none stands out."""
    known = [
        row
        for row in audit.cohorts
        if row.slow_share_pct is not None and row.traffic_share_pct is not None
    ]
    first = next(iter(known), None)
    if first is None:
        return None
    slow, traffic = first.slow_share_pct or 0, first.traffic_share_pct or 0
    return first if slow >= LIFT * traffic and slow > 0 else None


def cohort_name(row: CohortRow) -> Name:
    """Return the name of a cohort, both parts of it cut to fit."""
    if row.dimension == _WHOLE:
        return Name(row.value)
    return Name(f"{clean_name(row.dimension)}={clean_name(row.value)}")


def share_text(row: CohortRow) -> str:
    """Return how far a cohort is over-represented, in words."""
    return (
        f"{pct(row.slow_share_pct)} of slow requests from {pct(row.traffic_share_pct)} of traffic"
    )


def _sentence(row: CohortRow | None) -> Line:
    if row is None:
        return say(f"No cohort has {number(LIFT)} times its share of slow requests.")
    rest = ""
    if row.p99_without_ms is not None:
        rest = f"; without it the P99 of the rest is {ms(row.p99_without_ms)}"
    return say("Worst: ", cohort_name(row), f", {share_text(row)}{rest}.")


def _cells(row: CohortRow) -> Iterator[Span]:
    few = insufficient(row.n)
    yield cohort_name(row)
    yield count(row.n)
    yield ms(row.p99_ms, few)
    yield signed_ms(row.delta_ms, few)
    yield pct(row.slow_share_pct)
    yield pct(row.traffic_share_pct)
    yield ms(row.p99_without_ms, not_measured())
