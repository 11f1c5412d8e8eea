"""Section 2: the percentiles of the whole request against their targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.verdicts import Audit, Percentile, Verdict, is_unjudged
from tailbudget.sinks.report.document import (
    Block,
    Line,
    Mark,
    Paragraph,
    Section,
    Span,
    Table,
    Tone,
    columns,
    say,
)
from tailbudget.sinks.report.figures import (
    NO_TARGET,
    count,
    ms,
    not_measured,
    pct,
    signed_ms,
    words,
)

BASES: Final = {
    "all": "all",
    "success": "successes",
    "scheduled": "all, from due time",
}
"""What the rows of each basis count; the order is that of the table."""

TONES: Final = {
    Verdict.OK: Tone.GOOD,
    Verdict.AT_RISK: Tone.WARN,
    Verdict.BREACH: Tone.BAD,
    Verdict.INSUFFICIENT: Tone.WARN,
    Verdict.NO_DATA: Tone.WARN,
    Verdict.UNDECIDED: Tone.WARN,
}

_COLUMNS: Final = (
    "Percentile | Counted | Measured > | SLO > | Headroom > | Status | Beyond the SLO > | Note"
)


def end_to_end(audit: Audit) -> Section:
    """Return P50, P95, P99 and the maximum; failures count as slower than every target."""
    order = list(BASES)
    rows = sorted(audit.end_to_end, key=lambda row: order.index(row.basis))
    blocks: tuple[Block, ...] = (Paragraph(_sentence(audit)),)
    if rows:
        cells = tuple(say(*_cells(row)) for row in rows)
        blocks += (Table("End-to-end latency against the SLO", columns(_COLUMNS), cells),)
    return Section("end_to_end", "End-to-end latency", blocks)


def _sentence(audit: Audit) -> Line:
    if is_unjudged(audit):
        return say("Verdict: ", Mark(NO_TARGET, Tone.WARN), "; nothing is promised to judge by.")
    verdict = Mark(words(audit.verdict), TONES[audit.verdict])
    rest = "; the worst of the judged percentiles. A failed request is slower than every target."
    if not audit.end_to_end:
        rest = "; no percentile was measured."
    return say("Verdict: ", verdict, rest)


def _cells(row: Percentile) -> Iterator[Span]:
    yield row.percentile if row.percentile == "max" else row.percentile.upper()
    yield BASES[row.basis]
    yield ms(row.measured_ms)
    yield ms(row.slo_ms, NO_TARGET)
    yield _headroom(row)
    yield _status(row)
    yield _beyond(row)
    yield row.note.strip() or "none"


def _headroom(row: Percentile) -> str:
    if row.slo_ms is None:
        return NO_TARGET
    if row.headroom_ms is None:
        return not_measured()
    return f"{signed_ms(row.headroom_ms)} ({pct(100 * row.headroom_ms / row.slo_ms)})"


def _status(row: Percentile) -> Span:
    if row.status is None:
        return NO_TARGET if row.slo_ms is None else "not judged"
    return Mark(words(row.status), TONES[row.status])


def _beyond(row: Percentile) -> str:
    if row.over is None:
        return NO_TARGET if row.slo_ms is None else not_measured()
    return f"{count(row.over)} of {count(row.n)}"
