"""What stands on the screen of a Textual application."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable
from typing import Any, Final

from rich.cells import cell_len
from textual.app import App
from textual.pilot import Pilot

PATIENCE_S: Final = 30.0
CELL_WIDTH: Final = 12.2
"""Of a character, in the units of the picture."""

_PIECE: Final = re.compile(r'<text [^>]*?x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>', re.DOTALL)


def shown(app: App[Any]) -> str:
    """Return the lines of the screen as text, from its picture."""
    lines: dict[float, list[tuple[float, str]]] = {}
    _, _, picture = app.export_screenshot().partition("-matrix")
    for x, y, piece in _PIECE.findall(picture):
        text = html.unescape(piece).replace("\N{NO-BREAK SPACE}", " ").strip("\n")
        lines.setdefault(float(y), []).append((float(x), text))
    rows = (_row(pieces) for _, pieces in sorted(lines.items()))
    return "\n".join(row for row in rows if row.strip())


def _row(pieces: list[tuple[float, str]]) -> str:
    """Put the pieces where they stand; the picture leaves out what is blank."""
    row = ""
    for x, text in sorted(pieces):
        place = round(x / CELL_WIDTH)
        row += " " * (place - cell_len(row)) + text
    return row


async def wait_for(pilot: Pilot[Any], condition: Callable[[str], object], what: str) -> str:
    """Wait until the screen is so; return it. Fail with `what` when it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition(text := shown(pilot.app)):
        assert time.monotonic() < deadline, f"waited in vain for {what}:\n{text}"
        await pilot.pause(0.1)
    return text
