"""The optimisation brief: what to do first, on one page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tailbudget.schemas.brief import Brief, Option, Place
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.clean import capital
from tailbudget.sinks.report.document import (
    Block,
    Bullets,
    Heading,
    Line,
    Name,
    Section,
    Span,
    Table,
    columns,
    paragraph,
    say,
)

_COLUMNS: Final = "Action | Impact on p99 | Effort (estimate) | Quality risk | Verify"
_STAGES: Final = 3
"""Stages that are named of a place."""


def brief(audit: Audit) -> Section | None:
    """Return the brief; None when nobody asked for it."""
    if audit.brief is None:
        return None
    return Section("brief", "Optimisation brief", tuple(_blocks(audit.brief)))


def _blocks(said: Brief) -> Iterator[Block]:
    yield paragraph(said.problem)
    yield paragraph("Missing: ", ", ".join(said.missing) or "nothing", ".")
    yield Heading(say("Where slow requests spend time"))
    yield from _places(said)
    yield from _options("Batching, and its effect on P95", said.batching)
    yield from _options("Caching, and what invalidates it", said.caching)
    yield from _options("Smaller models", said.reductions)
    yield Heading(say("Ranked"))
    if said.ranked:
        rows = tuple(
            say(row.action, row.impact, row.effort, row.risk, row.verify) for row in said.ranked
        )
        yield Table("Fixes", columns(_COLUMNS), rows)
    else:
        yield paragraph("No fix: see what to do first.")
    yield Heading(say("Measuring"))
    yield Bullets(_lines(said.measurement))
    yield Heading(say("First week"))
    yield Bullets(_lines(said.first_week), ordered=True)
    yield paragraph(said.caveat)


def _places(said: Brief) -> Iterator[Block]:
    if said.places_note:
        yield paragraph(said.places_note)
        return
    parts = [_place(place) for place in said.places]
    if parts:
        parts[0][0] = capital(said.places[0].place)
    yield paragraph(*_listed(parts), ".")
    if said.unmapped:
        yield paragraph("Not mapped: ", *_listed(map(_unmapped, said.unmapped)), ".")


def _listed(parts: Iterable[Sequence[Span]]) -> list[Span]:
    """Return the parts one after the other, set apart by semicolons."""
    listed: list[Span] = []
    for part in parts:
        listed += ["; ", *part] if listed else part
    return listed


def _place(place: Place) -> list[Span]:
    spans: list[Span] = [place.place, _share(place)]
    for at, stage in enumerate(place.stages[:_STAGES]):
        spans += [", " if at else " (", Name(stage)]
    more = len(place.stages) - _STAGES
    if place.stages:
        spans.append(f", {more} more)" if more > 0 else ")")
    return spans


def _unmapped(place: Place) -> list[Span]:
    return [Name(place.place), _share(place)]


def _share(place: Place) -> str:
    return ": not measured" if place.share_pct is None else f": {place.share_pct:.0f} %"


def _options(title: str, options: Iterable[Option]) -> Iterator[Block]:
    yield Heading(say(title))
    yield Bullets(tuple(say(f"{option.name}: {option.text}") for option in options))


def _lines(texts: Iterable[str]) -> tuple[Line, ...]:
    return tuple(say(text) for text in texts)
