"""The report on a terminal."""

from __future__ import annotations

import audits
import pytest
from rich.cells import cell_len
from said import printed

WIDTHS = pytest.mark.parametrize("width", [40, 60, 80, 120, 200])


@WIDTHS
def test_lines_fit_the_terminal(width: int) -> None:
    """No line is wider than the terminal, however narrow it is."""
    lines = printed(audits.breach(), width).splitlines()
    assert max(cell_len(line) for line in lines) <= width


@WIDTHS
def test_figures_are_never_broken(width: int) -> None:
    """A figure stands on one line with its unit; tables that do not fit become lists."""
    said = printed(audits.breach(), width)
    for figure in ("280.4 ms", "+265.2 ms", "251.9 to 278.3 ms", "insufficient (n=900)", "92.1 %"):
        assert figure in said


@pytest.mark.parametrize("width", [60, 70, 80, 90, 100, 120, 160])
def test_no_heading_and_no_cell_is_cut(width: int) -> None:
    """What stands in a table stands there whole, or the table becomes a list."""
    said = printed(audits.breach(), width)
    wide = printed(audits.breach(), 4_000)
    assert said.count("…") == wide.count("…")
    for words in ("Difference", "Share", "Tail", "only", "yes"):
        assert words in said.split()


def test_colour_comes_from_the_terminal() -> None:
    """A terminal gets the verdict in red, a file gets no escape sequences."""
    assert "\x1b[1;31mBREACH\x1b[0m" in printed(audits.breach(), 100, colour=True)
    assert "\x1b" not in printed(audits.breach(), 100)


def test_names_send_no_escape_sequences() -> None:
    """A name with escape sequences or with rich's markup is shown, not obeyed."""
    red = printed(audits.hostile("\x1b[31mred\x07"), 100)
    assert "\x1b" not in red
    assert "\x07" not in red
    assert "[bold red]rich[/] :smile:" in printed(audits.hostile("[bold red]rich[/] :smile:"), 100)
