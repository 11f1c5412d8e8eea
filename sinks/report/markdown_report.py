"""The report as Markdown: aligned tables that read well in a terminal and on GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import (
    Block,
    Bullets,
    Column,
    Heading,
    Line,
    Mark,
    Name,
    Section,
    Span,
    Table,
    Tone,
    section_title,
)
from tailbudget.sinks.report.lines import document

_ACTIVE: Final = re.compile(r"[\\`*\[\]<~|$]|&(?=#?\w+;)|(?<![^\W_])_|_(?![^\W_])")
"""Signs that mean something within a line; an underscore within a word does not."""

_LEADING: Final = re.compile(r"^(\d+)([.)])|^([#+=>-])")
"""Signs that mean something at the start of a line."""

_NO_CODE: Final = frozenset("`|\\")
"""Signs that cannot stand in code within a table, or only by rules that viewers differ on."""


def markdown(audit: Audit) -> str:
    """Return the report as GitHub-flavoured Markdown, the verdict first."""
    whole = document(audit)
    parts = [_line(whole.headline), f"# {_line(whole.title)}"]
    for at, section in enumerate(whole.sections):
        parts.append(f"## {section_title(at, section)}")
        parts.append(section_markdown(section))
    return "\n\n".join(parts) + "\n"


def section_markdown(section: Section) -> str:
    """Return the blocks of a section, without its title."""
    return "\n\n".join(map(_block, section.blocks))


def _block(block: Block) -> str:
    match block:
        case Table():
            return "\n".join(_table(block))
        case Bullets():
            return _bullets(block)
        case Heading():
            return f"### {_line(block.line)}"
        case _:
            return _line(block.line)


def _bullets(block: Bullets) -> str:
    marks = (f"{at}." if block.ordered else "-" for at in range(1, len(block.lines) + 1))
    entries = [f"{mark} {_line(line)}" for mark, line in zip(marks, block.lines, strict=True)]
    title = [block.title, ""] if block.title else []
    return "\n".join([*title, *entries])


def _table(table: Table) -> Iterator[str]:
    yield f"{table.caption}:"
    yield ""
    rows = [[_span(cell) for cell in row] for row in table.rows]
    headings = [_escaped(column.heading) for column in table.columns]
    widths = [max(map(cell_len, cells)) for cells in zip(headings, *rows, strict=True)]
    sized = list(zip(table.columns, widths, strict=True))
    yield _row(headings, sized)
    yield f"|{'|'.join(_rule(column, width) for column, width in sized)}|"
    for row in rows:
        yield _row(row, sized)


def _row(cells: list[str], sized: list[tuple[Column, int]]) -> str:
    padded = (_pad(cell, column, width) for cell, (column, width) in zip(cells, sized, strict=True))
    return f"| {' | '.join(padded)} |"


def _pad(cell: str, column: Column, width: int) -> str:
    room = " " * (width - cell_len(cell))
    return room + cell if column.figures else cell + room


def _rule(column: Column, width: int) -> str:
    return "-" * (width + 1) + ":" if column.figures else "-" * (width + 2)


def _line(line: Line) -> str:
    text = "".join(map(_span, line))
    if line and not isinstance(line[0], str):
        return text
    return _LEADING.sub(_guarded, text)


def _guarded(found: re.Match[str]) -> str:
    return f"{found[1]}\\{found[2]}" if found[1] else f"\\{found[3]}"


def _span(span: Span) -> str:
    if isinstance(span, str):
        return _escaped(span)
    if isinstance(span, Name):
        text = _escaped(span.text) if _NO_CODE & set(span.text) else f"`{span.text}`"
        return _guard_name(text)
    strong = isinstance(span, Mark) and span.tone in (Tone.STRONG, Tone.BAD, Tone.WARN)
    text = _escaped(span.text)
    return f"**{text}**" if strong else text


def _guard_name(text: str) -> str:
    return text if text.startswith("`") else _LEADING.sub(_guarded, text)


def _escaped(text: str) -> str:
    return _ACTIVE.sub(lambda found: f"\\{found[0]}", text)
