"""Section 7: with and without the minutes after a deploy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.sections import ColdStart, ColdWindow, SuspectedStart
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.clean import bare, capital
from tailbudget.sinks.report.document import (
    Block,
    Name,
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
    time_text,
    times,
    words,
)

_FEWEST: Final = 100
"""Requests below which the P99 would be the maximum."""

_DEPLOYS: Final = "From | To | Version | Kind"
_SUSPECTED: Final = "Sign | First slow request | Replica | Idle before > | n > | Worst > | Usual >"


def cold_start(audit: Audit) -> Section:
    """Return P99 unfiltered and filtered, the deploys, and what looks like an unmarked start."""
    found = audit.cold_start
    if found is None:
        said = paragraph("Not measured: nobody looked at deploys.")
        return Section("cold_start", "Cold start", (said,))
    return Section("cold_start", "Cold start", tuple(_blocks(found, audit.provenance.n)))


def _blocks(found: ColdStart, n: int) -> Iterator[Block]:
    yield paragraph(f"Verdict: {words(found.verdict)}. {capital(bare(found.note))}.")
    rows = (
        say("unfiltered", ms(found.unfiltered_p99_ms, _unknown(n)), "all requests"),
        say("filtered", ms(found.filtered_p99_ms, "not computable"), _left_out(found)),
    )
    yield Table("P99 with and without cold windows", columns("P99 | Measured > | Of"), rows)
    if found.deploys:
        cells, more = cut(tuple(say(*_deploy(one)) for one in found.deploys), "deploys")
        yield Table("Cold windows after deploys", columns(_DEPLOYS), cells)
        yield from more
    if found.suspected:
        cells, more = cut(tuple(say(*_suspect(one)) for one in found.suspected), "suspects")
        yield Table("Suspected starts that no event announced", columns(_SUSPECTED), cells)
        yield from more


def _unknown(n: int) -> str:
    return insufficient(n) if n < _FEWEST else "a failed request"


def _left_out(found: ColdStart) -> str:
    if not found.deploys:
        return "no deploy is known: there is nothing to leave out"
    windows = times(len(found.deploys), "cold window")
    return f"requests outside of {windows}; {times(found.excluded, 'request')} left out"


def _deploy(window: ColdWindow) -> Iterator[Span]:
    yield time_text(window.start_ns)
    yield time_text(window.end_ns)
    yield Name(window.version) if window.version else "unknown"
    yield words(window.kind)


def _suspect(start: SuspectedStart) -> Iterator[Span]:
    yield words(start.sign)
    yield start.at
    yield Name(start.instance) if start.instance else not_measured("none is named")
    yield "not the sign" if start.idle_s is None else f"{number(start.idle_s)} s"
    yield count(start.n)
    yield ms(start.worst_ms)
    yield ms(start.usual_ms)
