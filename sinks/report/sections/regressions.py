"""Which stages became slower for the same shapes, where a worker watches them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.anomaly_rows import OVER
from tailbudget.schemas.regressions import KeptRegression, StageState
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import (
    MAX_ROWS,
    Block,
    Bullets,
    Line,
    Mark,
    Name,
    Section,
    Span,
    Table,
    Tone,
    columns,
    cut,
    say,
)
from tailbudget.sinks.report.figures import count, ms, not_measured, number, words

_FOUND: Final = (
    "Stage | State | Since | Until | Slower for the same shapes > | 95 % interval > |"
    " Expected > | Measured > | Cohorts > | After deploy | Cause"
)


def regressions(audit: Audit) -> Section | None:
    """Return the anomalies and the states of the models; None where nothing watches."""
    blocks = tuple(_blocks(audit))
    return Section("regressions", "Regressions", blocks) if blocks else None


def _blocks(audit: Audit) -> Iterator[Block]:
    if audit.regressions:
        rows, note = cut(tuple(say(*_row(one)) for one in audit.regressions), "regressions")
        yield Table("Stages that became slower than their shapes explain", columns(_FOUND), rows)
        yield from note
        moved = [say(Name(one.stage), f": {s}") for one in audit.regressions for s in one.signals]
        if moved:
            yield Bullets(tuple(moved[:MAX_ROWS]), "What changed with their onset:")
    if audit.stage_states:
        by_stage: dict[str, list[StageState]] = {}
        for one in audit.stage_states:
            by_stage.setdefault(one.stage, []).append(one)
        lines = tuple(_states(stage, states) for stage, states in by_stage.items())
        yield Bullets(lines, "What the models know of each stage at the end:")


def _row(one: KeptRegression) -> Iterator[Span]:
    yield Name(one.stage)
    yield words(one.state) if one.state in OVER else Mark("goes on", Tone.BAD)
    yield one.onset
    yield one.ended or "now"
    yield not_measured() if one.effect_pct is None else f"{one.effect_pct:+.3g} %"
    yield _interval(one)
    yield ms(one.expected_ms)
    yield ms(one.measured_ms)
    yield count(len(one.cohorts))
    yield Name(one.deploy) if one.deploy else "none"
    yield words(one.cause) if one.cause else "not named"


def _interval(one: KeptRegression) -> Span:
    if one.low_pct is None or one.high_pct is None:
        return not_measured()
    return f"{number(one.low_pct)} to {number(one.high_pct)} %"


def _states(stage: str, states: list[StageState]) -> Line:
    said = ", ".join(f"{count(one.cohorts)} {words(one.state)}" for one in states)
    return say(Name(stage), f": {said}")
