"""What is left of the error budgets, where a worker keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.budgets import KeptBudget, KeptSilence
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import (
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
from tailbudget.sinks.report.figures import count, not_measured, pct, ratio, words

_BUDGETS: Final = (
    "Objective | Target > | Bad > | Of > | Left > | Without maintenance > | Burn rate > |"
    " Spent at this rate | Alert"
)


def budgets(audit: Audit) -> Section | None:
    """Return the budgets and the silences; None where there is neither."""
    blocks = tuple(_blocks(audit))
    return Section("budgets", "Error budgets", blocks) if blocks else None


def _blocks(audit: Audit) -> Iterator[Block]:
    if audit.budgets:
        rows, note = cut(tuple(map(_row, audit.budgets)), "objectives")
        yield Table("What is left of each error budget", columns(_BUDGETS), rows)
        yield from note
    if audit.silences:
        yield Bullets(tuple(map(_silence, audit.silences)), "Nobody was told of:")


def _row(one: KeptBudget) -> Line:
    return say(
        Name(one.objective),
        f"{one.target_pct:.10g} %",
        count(one.bad),
        count(one.total),
        _left(one.left_pct),
        pct(one.corrected_pct) if one.corrected_pct is not None else "no maintenance",
        ratio(one.burn_rate),
        one.exhausted_at or "not before the period ends",
        words(one.status),
    )


def _left(left_pct: float | None) -> Span:
    if left_pct is None:
        return not_measured()
    return Mark(pct(left_pct), Tone.BAD) if left_pct <= 0 else pct(left_pct)


def _silence(one: KeptSilence) -> Line:
    what: Span = Name(one.alert) if one.alert else "all alerts"
    return say(what, f", {one.begins} to {one.ends}: {one.reason}")
