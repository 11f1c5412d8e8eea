"""The optimisation brief as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tailbudget.schemas.brief import Brief, Option, Place

_HEADER = (
    "| Action | Impact on p99 | Effort (estimate) | Quality risk | Verify |",
    "| - | - | - | - | - |",
)

_STAGES = 3  # that are named of a place


def brief_markdown(brief: Brief) -> str:
    """Return the brief, headings of the second level below one of the first."""
    return "\n".join(line.rstrip() for line in _lines(brief)) + "\n"


def _lines(brief: Brief) -> Iterator[str]:
    yield "# Optimisation brief"
    yield ""
    yield brief.problem
    yield ""
    yield f"Missing: {', '.join(brief.missing) or 'nothing'}."
    yield from _section("Where slow requests spend time", _places(brief))
    yield from _section("Batching, and its effect on P95", _options(brief.batching))
    yield from _section("Caching, and what invalidates it", _options(brief.caching))
    yield from _section("Smaller models", _options(brief.reductions))
    yield from _section("Ranked", _ranked(brief))
    yield from _section("Measuring", (f"- {text}" for text in brief.measurement))
    yield from _section("First week", (f"{i}. {t}" for i, t in enumerate(brief.first_week, 1)))
    yield ""
    yield brief.caveat


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield from lines


def _places(brief: Brief) -> Iterator[str]:
    if brief.places_note:
        yield brief.places_note
        return
    yield "; ".join(_place(place) for place in brief.places) + "."
    if brief.unmapped:
        yield "Not mapped: " + "; ".join(_share(place) for place in brief.unmapped) + "."


def _place(place: Place) -> str:
    named = [_code(stage) for stage in place.stages[:_STAGES]]
    if more := len(place.stages) - len(named):
        named.append(f"{more} more")
    return _share(place, code=False) + (f" ({', '.join(named)})" if named else "")


def _share(place: Place, *, code: bool = True) -> str:
    name = _code(place.place) if code else place.place
    return f"{name}: {'not measured' if place.share_pct is None else f'{place.share_pct:.0f} %'}"


def _code(name: str) -> str:
    return f"`{name.replace('`', '')}`"


def _options(options: Iterable[Option]) -> Iterator[str]:
    return (f"- {option.name}: {option.text}" for option in options)


def _ranked(brief: Brief) -> Iterator[str]:
    yield from _HEADER
    for row in brief.ranked:
        cells = (row.action, row.impact, row.effort, row.risk, row.verify)
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
