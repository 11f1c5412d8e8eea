"""Section 9: what to do, most milliseconds of P99 an hour of work first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.proposals import CauseName, Optimization
from tailbudget.schemas.verdicts import Audit, is_refused
from tailbudget.sinks.report.clean import bare, clean_name
from tailbudget.sinks.report.document import (
    Block,
    Bullets,
    Line,
    Mark,
    Paragraph,
    Section,
    Span,
    Table,
    columns,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import (
    interval_ms,
    ms,
    not_measured,
    number,
    words,
    yes_no,
)

_COLUMNS: Final = (
    "Fix | Cause | Horizon | P99 saved (estimate) > | Interval > | Hours > | ms/hour >"
    " | Quality risk | Reversible"
)


def optimizations(audit: Audit) -> Section:
    """Return the single highest-leverage fix, then the ranking, then how to verify each."""
    title = "Optimisations"
    if not audit.optimizations:
        said = paragraph(f"No fix is recommended: {_why_none(audit)}.")
        return Section("optimizations", title, (said,))
    rows = tuple(say(*_cells(at, fix)) for at, fix in enumerate(audit.optimizations, 1))
    ranking = Table("Fixes, most milliseconds an hour first", columns(_COLUMNS), rows)
    fixes = Bullets(tuple(_fix(one) for one in audit.optimizations), "The fixes:", ordered=True)
    return Section("optimizations", title, (*_first(audit), ranking, fixes))


def _why_none(audit: Audit) -> str:
    if audit.refused:
        return "the audit is refused" if is_refused(audit) else bare(audit.refused)
    if audit.tail_driver is None:
        return "slow requests take no longer than fast ones"
    if all(one.cause is CauseName.UNKNOWN for one in audit.causes):
        return "a fix takes a cause that is established, and none is"
    return "none of the catalogue fits the causes"


def saved_text(fix: Optimization) -> str:
    """Return what a fix is estimated to save, in words."""
    if fix.p99_saved_ms is None:
        return f"saving not measured, {hours(fix)} of work"
    return f"an estimated {ms(fix.p99_saved_ms)} of P99 for {hours(fix)} of work"


def hours(fix: Optimization) -> str:
    """Return the work of a fix."""
    return f"{number(fix.hours)} {'hour' if fix.hours == 1 else 'hours'}"


def _first(audit: Audit) -> Iterator[Block]:
    best = audit.optimizations[0]
    yield Paragraph(say("Do first: ", Mark(bare(best.fix)), f" ({saved_text(best)})."))
    for horizon, title in (("short", "Short term"), ("long", "Long term")):
        fix = next((one for one in audit.optimizations if one.horizon == horizon), None)
        said = f"{bare(fix.fix)} ({saved_text(fix)})." if fix else "nothing in the catalogue fits."
        yield paragraph(f"{title}: ", said)


def _cells(at: int, fix: Optimization) -> Iterator[Span]:
    yield f"{at}. {clean_name(words(fix.key))}" if fix.key else f"{at}."
    yield words(fix.cause)
    yield f"{fix.horizon} term"
    yield ms(fix.p99_saved_ms)
    yield interval_ms(fix.interval_ms)
    yield number(fix.hours)
    yield not_measured() if fix.ms_per_hour is None else number(fix.ms_per_hour)
    yield fix.quality_risk
    yield yes_no(fix.reversible)


def _fix(fix: Optimization) -> Line:
    basis = f" Basis: {bare(fix.basis)}." if fix.basis else ""
    return say(Mark(bare(fix.fix)), f". To verify: {bare(fix.verify)}.", basis)
