"""The report for a terminal, in colour, wide or narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import (
    Block,
    Bullets,
    Heading,
    Line,
    Name,
    Span,
    Table,
    Tone,
    section_title,
)
from tailbudget.sinks.report.lines import document

_TONES: Final = {
    Tone.GOOD: "bold green",
    Tone.WARN: "bold yellow",
    Tone.BAD: "bold red",
    Tone.STRONG: "bold",
}
_INDENT: Final = (0, 0, 0, 2)
_BETWEEN: Final = 2  # from one column to the next


def text(audit: Audit, console: Console) -> None:
    """Print the report, the verdict first.

    Args:
        audit: what was found.
        console: where to; its width decides whether a table stays a table.
    """
    whole = document(audit)
    console.print(_line(whole.headline))
    console.print()
    console.print(_line(whole.title, "bold underline"))
    for at, section in enumerate(whole.sections):
        console.print()
        console.print(Text(section_title(at, section), "bold cyan"))
        for block in section.blocks:
            _print(block, console)


def _print(block: Block, console: Console) -> None:
    match block:
        case Table():
            _print_table(block, console)
        case Bullets():
            _print_bullets(block, console)
        case Heading():
            console.print()
            console.print(_line(block.line, "bold"))
        case _:
            console.print(_line(block.line))


def _print_bullets(block: Bullets, console: Console) -> None:
    if block.title:
        console.print(Text(block.title))
    for at, line in enumerate(block.lines, 1):
        grid = Grid.grid(padding=(0, 1, 0, 0))
        grid.add_row(Text(f"{at}." if block.ordered else "•"), _line(line))
        console.print(Padding(grid, _INDENT))


def _print_table(table: Table, console: Console) -> None:
    console.print()
    console.print(Text(f"{table.caption}:"))
    room = console.width - _BETWEEN * (len(table.columns) - 1) - 2
    widths = _widths(table, room)
    console.print(_records(table) if widths is None else _grid(table, widths))


def _widths(table: Table, room: int) -> list[int] | None:
    """Return the width of each column; None when something would be cut off."""
    numbers = range(len(table.columns))
    widths = [_least_width(table, at) for at in numbers]
    wanted = [_whole_width(table, at) - widths[at] for at in numbers]
    spare = room - sum(widths)
    if spare < 0:
        return None
    # Whoever wants little gets it: long notes break over lines, headings need not.
    for at in sorted(numbers, key=wanted.__getitem__):
        given = min(spare, wanted[at])
        widths[at] += given
        spare -= given
    return widths


def _grid(table: Table, widths: Sequence[int]) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column, width in zip(table.columns, widths, strict=True):
        grid.add_column(
            Text(column.heading), justify="right" if column.figures else "left", width=width
        )
    for row in table.rows:
        cells = [_line((cell,)) for cell in row]
        for at, cell in enumerate(cells):
            cell.no_wrap = _is_whole(table, at) or None
        grid.add_row(*cells)
    return grid


def _is_whole(table: Table, at: int) -> bool:
    """Figures never break over lines, nor does what a row is named by."""
    return table.columns[at].figures or not at


def _whole_width(table: Table, at: int) -> int:
    texts = [table.columns[at].heading, *(_words(row[at]) for row in table.rows)]
    return max(map(cell_len, texts))


def _least_width(table: Table, at: int) -> int:
    """Return the width below which something of a column would be cut off."""
    texts = [_words(row[at]) for row in table.rows]
    parts = texts if _is_whole(table, at) else [word for text in texts for word in text.split()]
    return max(map(cell_len, [*table.columns[at].heading.split(), *parts]), default=0)


def _records(table: Table) -> Grid:
    """Return the rows one below the other, a line a cell, for narrow terminals."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim")
    grid.add_column()
    for row in table.rows:
        grid.add_row()
        for column, cell in zip(table.columns, row, strict=True):
            grid.add_row(Text(column.heading), _line((cell,)))
    return grid


def _line(line: Line, style: str = "") -> Text:
    whole = Text(style=style)
    for span in line:
        whole.append(_words(span), _style(span))
    return whole


def _words(span: Span) -> str:
    return span if isinstance(span, str) else span.text


def _style(span: Span) -> str:
    if isinstance(span, str):
        return ""
    return "cyan" if isinstance(span, Name) else _TONES[span.tone]
