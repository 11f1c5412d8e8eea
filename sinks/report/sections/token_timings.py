"""Times of tokens by the definition of their source, and goodput."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.token_timing import Goodput, TokenRow
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import Block, Section, Span, Table, columns, paragraph, say
from tailbudget.sinks.report.figures import (
    NO_TARGET,
    count,
    insufficient,
    ms,
    not_measured,
    number,
    pct,
    times,
)

NAMES: Final = {
    "ttft": "time to the first token",
    "itl": "time between two, mean of a request",
    "tpot": "time of an output token",
}
_COLUMNS: Final = "Time | n > | P50 > | P95 > | P99 >"
_GOODPUT: Final = "Goodput | Value >"


def token_timings(audit: Audit) -> Section | None:
    """Return the section; None where no record tells a time of its tokens."""
    found = audit.token_timings
    if found is None:
        return None
    told = "nobody says" if found.definition is None else str(found.definition)
    blocks: list[Block] = [paragraph(f"By definition of the source: {told}.")]
    if found.rows:
        rows = tuple(say(*_row(row)) for row in found.rows)
        blocks.append(Table("Times of the tokens of successful requests", columns(_COLUMNS), rows))
    else:
        blocks = [paragraph("Not measured: no record tells a time of its tokens.")]
    if found.goodput is not None:
        rows = tuple(say(*pair) for pair in _goodput(found.goodput))
        blocks.append(Table("Requests that met every target", columns(_GOODPUT), rows))
    return Section("token_timings", "Token timings", tuple(blocks))


def _row(row: TokenRow) -> Iterator[Span]:
    yield f"{NAMES[row.figure]} ({row.figure.upper()})"
    yield count(row.n)
    for value in (row.p50_ms, row.p95_ms, row.p99_ms):
        yield ms(value, insufficient(row.n))


def _goodput(found: Goodput) -> Iterator[tuple[str, str]]:
    yield "target of the first token", ms(found.ttft_ms, NO_TARGET)
    yield "target of an output token", ms(found.tpot_ms, NO_TARGET)
    yield "target of the whole request", ms(found.e2e_ms, NO_TARGET)
    yield "good requests", f"{count(found.good)} of {count(found.n)}"
    yield "share", pct(found.share_pct)
    rate = not_measured("requests have no times")
    yield "a second", rate if found.per_s is None else number(found.per_s)
    if found.untold:
        yield "not told, so not good", times(found.untold, "request")
