"""Sections 3 and 4: what each stage takes, and what it adds to slow requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.sections import StageRole, StageRow
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import (
    Block,
    Line,
    Mark,
    Name,
    Paragraph,
    Section,
    Span,
    Table,
    Tone,
    columns,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import (
    count,
    insufficient,
    interval_ms,
    ms,
    not_measured,
    pct,
    signed_ms,
)

ADDED_UP: Final = (StageRole.STAGE, StageRole.UNATTRIBUTED)
"""The roles whose times add up to the total."""

_STAGES: Final = "Stage | Role | n > | P50 > | P95 > | P99 > | Share of P99 > | Tail only"
_TAIL: Final = "Stage | Mean, fast > | Mean, slow > | Difference > | 95 % interval > | Share >"
_ROLES: Final = {
    StageRole.STAGE: "stage",
    StageRole.CONTAINER: "holds other stages",
    StageRole.PARALLEL: "runs beside others",
    StageRole.UNATTRIBUTED: "in no stage",
}


def stages(audit: Audit) -> Section:
    """Return the percentiles of each stage and its share of slow requests."""
    if not audit.stages:
        said = paragraph("Not measured: no record carries a stage.")
        return Section("stages", "Stages", (said,))
    blocks: list[Block] = []
    tail_only = [row.stage for row in audit.stages if row.tail_only]
    if tail_only:
        blocks.append(Paragraph(_tail_only(tail_only)))
    rows = tuple(say(*_percentiles(row)) for row in audit.stages)
    blocks.append(Table("Latency of each stage, successful requests", columns(_STAGES), rows))
    return Section("stages", "Stages", tuple(blocks))


def tail_driver(audit: Audit) -> Section:
    """Return slow minus fast for each stage, the tail driver first."""
    blocks: list[Block] = [Paragraph(_driver(audit)), paragraph(_bands(audit))]
    rows = sorted(
        (row for row in audit.stages if row.delta_ms is not None),
        key=lambda row: -(row.delta_ms or 0),
    )
    if rows:
        cells = tuple(say(*_difference(row)) for row in rows)
        blocks.append(Table("Slow requests less fast ones, by stage", columns(_TAIL), cells))
    return Section("tail_driver", "Slow against fast requests", tuple(blocks))


def slow_text(threshold: str | float) -> str:
    """Return where the slow band lies, in words."""
    if threshold == "p95":
        return "those between P95 and P99"
    where = threshold.upper() if isinstance(threshold, str) else ms(threshold)
    return f"those from {where} up"


def _percentiles(row: StageRow) -> Iterator[Span]:
    few = insufficient(row.n)
    yield Name(row.stage)
    yield _ROLES[row.role]
    yield count(row.n)
    yield ms(row.p50_ms, few)
    yield ms(row.p95_ms, few)
    yield ms(row.p99_ms, few)
    yield pct(row.p99_share_pct, not_measured() if row.role in ADDED_UP else "not added up")
    yield (
        Mark("yes", Tone.WARN)
        if row.tail_only
        else "not measured"
        if row.tail_only is None
        else "no"
    )


def _difference(row: StageRow) -> Iterator[Span]:
    yield Name(row.stage)
    yield ms(row.mean_fast_ms)
    yield ms(row.mean_slow_ms)
    yield signed_ms(row.delta_ms)
    yield interval_ms(row.delta_interval_ms)
    yield pct(row.tail_share_pct)


def _tail_only(names: list[str]) -> Line:
    spans: list[Span] = ["Only the tail is slow (the median is steady, the P99 is not) in "]
    for at, name in enumerate(names):
        spans += [Name(name), ", " if at < len(names) - 1 else "."]
    return say(*spans)


def _driver(audit: Audit) -> Line:
    driver = audit.tail_driver
    if driver is None:
        return say("No tail driver: no stage was measured to be slower in slow requests.")
    share = "" if driver.tail_share_pct is None else f", {pct(driver.tail_share_pct)} of the gap"
    return say(
        "Tail driver: ",
        Name(driver.stage),
        f" takes {ms(driver.mean_slow_ms)} in slow requests and {ms(driver.mean_fast_ms)} in fast"
        f" ones, {signed_ms(driver.delta_ms)}{share}.",
    )


def _bands(audit: Audit) -> str:
    slow = slow_text(audit.provenance.slow_request_threshold)
    said = f"Slow requests are {slow}, fast ones those between P40 and P50."
    parts = [row for row in audit.stages if row.role in ADDED_UP]
    deltas = [row.delta_ms for row in parts if row.delta_ms is not None]
    if not deltas or len(deltas) < len(parts):
        return said
    return f"{said} The parts that add up make {signed_ms(sum(deltas))} together."
