"""The report of histograms: bounds in section 2, and the reason in all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.bounds import END_TO_END, REASON, Bound
from tailbudget.schemas.records import NO_SERVICE
from tailbudget.schemas.verdicts import Audit, Verdict, is_unjudged
from tailbudget.sinks.report.document import (
    Block,
    Mark,
    Name,
    Section,
    Span,
    Table,
    Tone,
    columns,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import NO_TARGET, count, ms, not_measured, number, words
from tailbudget.sinks.report.sections.latency import TONES

_NOTHING: Final = (
    ("stages", "Stages"),
    ("tail_driver", "Slow against fast requests"),
    ("shape", "Input shape"),
    ("cohorts", "Cohorts"),
    ("cold_start", "Cold start"),
    ("causes", "Causes"),
    ("optimizations", "Optimisations"),
    ("recommendation", "SLO and capacity"),
)
_COLUMNS: Final = "Percentile | Lies between > | SLO > | Status | n > | Mean >"
_OTHERS: Final = "Of | Metric | Percentile | Lies between > | n > | Mean >"


def bounds_sections(audit: Audit) -> tuple[Section, ...]:
    """Return sections 2 to 10 of a report of histograms."""
    whole = tuple(say(*_judged(row)) for row in audit.bounds if row.of == END_TO_END)
    others = tuple(say(*_other(row)) for row in audit.bounds if row.of != END_TO_END)
    blocks: list[Block] = [
        paragraph(
            "Percentiles are known by their bucket alone, and are never estimated within it: a"
            " target inside of the bucket is undecided."
        ),
        Table("Bounds of the end-to-end latency", columns(_COLUMNS), whole),
    ]
    if others:
        blocks.append(Table("Bounds of parts and of token timings", columns(_OTHERS), others))
    latency = Section("end_to_end", "End-to-end latency", tuple(blocks))
    said = paragraph(f"Not measured: {REASON}.")
    return latency, *(Section(key, title, (said,)) for key, title in _NOTHING)


def bounded(audit: Audit) -> Iterator[Span]:
    """Yield the first line of such a report: the verdict, and the percentile that it hangs on."""
    rows = [row for row in audit.bounds if row.of == END_TO_END]
    judged = [row for row in rows if row.status is audit.verdict and row.slo_ms is not None]
    unjudged = is_unjudged(audit)
    row = (judged or rows)[-1]
    mark = Mark(words(audit.verdict).upper(), TONES[audit.verdict])
    yield Mark(NO_TARGET.upper(), Tone.WARN) if unjudged else mark
    yield ": "
    if audit.provenance.service != NO_SERVICE:
        yield Name(audit.provenance.service)
        yield " "
    yield f"{row.percentile.upper()} lies {between(row)}, by the buckets of "
    yield Name(row.metric)
    yield ", and no target is set" if unjudged else _against(row)
    yield "; a histogram holds no request, so that nothing is attributed"


def between(row: Bound) -> str:
    """Return the bounds of a percentile in words."""
    if row.high_ms is None:
        return f"over {ms(row.low_ms)}"
    return f"over {number(row.low_ms)} and up to {ms(row.high_ms)}"


def _against(row: Bound) -> str:
    target = ms(row.slo_ms, NO_TARGET)
    said = {
        Verdict.OK: f", within its {target} SLO",
        Verdict.BREACH: f", over its {target} SLO",
        Verdict.UNDECIDED: f", and its {target} SLO is inside",
        Verdict.INSUFFICIENT: f" of {count(row.n)} requests, too few to judge",
    }
    return said.get(row.status, "") if row.status is not None else ""


def _judged(row: Bound) -> Iterator[Span]:
    yield row.percentile.upper()
    yield between(row)
    yield ms(row.slo_ms, NO_TARGET)
    yield NO_TARGET if row.status is None else _status(row.status)
    yield count(row.n)
    yield ms(row.mean_ms, not_measured("no sum"))


def _status(verdict: Verdict) -> Mark:
    return Mark(words(verdict), TONES[verdict])


def _other(row: Bound) -> Iterator[Span]:
    yield Name(row.of)
    yield Name(row.metric)
    yield row.percentile.upper()
    yield between(row)
    yield count(row.n)
    yield ms(row.mean_ms, not_measured("no sum"))
