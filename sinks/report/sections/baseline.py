"""The comparison with a baseline, when there is one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.comparison import Change, Comparison
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import (
    Block,
    Mark,
    Name,
    Section,
    Span,
    Table,
    Tone,
    columns,
    cut,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import (
    interval_ms,
    ms,
    not_measured,
    number,
    signed_ms,
    times,
    words,
)

_CHANGES: Final = (
    "Name | Of | Percentile | Before > | Now > | Change > | 95 % interval > | p-value > | Changed"
)
_SMALLEST_P: Final = 0.001


def baseline(audit: Audit) -> Section | None:
    """Return what changed, and what the change of the P99 is made of; None without a baseline."""
    if audit.baseline is None:
        return None
    return Section("baseline", "Against the baseline", tuple(_blocks(audit.baseline)))


def _blocks(found: Comparison) -> Iterator[Block]:
    yield paragraph(f"Verdict: {words(found.verdict)}. {found.note}")
    before, now = times(found.before_n, "request"), times(found.now_n, "request")
    yield paragraph(f"{before} then, {now} now; P99 {signed_ms(found.p99_change_ms)}.")
    if found.parts:
        rows = tuple(
            say(words(part.part), signed_ms(part.delta_ms), part.note.strip() or "none")
            for part in found.parts
        )
        yield Table("The change of P99 in parts", columns("Part | Change > | Note"), rows)
    if found.changes:
        cells, more = cut(tuple(say(*_change(one)) for one in found.changes), "comparisons")
        yield Table("Percentiles then and now", columns(_CHANGES), cells)
        yield from more


def _change(one: Change) -> Iterator[Span]:
    yield Name(one.name) if one.name else "all requests"
    yield one.of
    yield one.percentile.upper()
    yield ms(one.before_ms)
    yield ms(one.now_ms)
    yield signed_ms(one.delta_ms)
    yield interval_ms(one.interval_ms)
    yield _p_value(one.p_value)
    if one.changed is None:
        yield "cannot say: too few requests"
    else:
        yield Mark("yes", Tone.WARN) if one.changed else "no"


def _p_value(value: float | None) -> str:
    if value is None:
        return not_measured()
    return f"below {_SMALLEST_P}" if value < _SMALLEST_P else number(value)
