"""A table whose rows come anew each second, under a cursor that stays where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table.

    Attributes:
        key: tells it from the others, and is the same when it comes again.
        cells: what stands in it, column by column.
    """

    key: str
    cells: tuple[Text, ...]


class LiveTable(DataTable[Text]):
    """Shows lines.

    Args:
        columns: titles of the columns.
        empty: what stands in the place of lines while there are none.
        id: name of the widget.
    """

    DEFAULT_CSS: ClassVar[str] = "LiveTable { height: 1fr; }"

    def __init__(self, columns: Sequence[str], empty: str, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, cursor_type="row", zebra_stripes=True, cell_padding=1)
        self._titles = tuple(columns)
        self._empty = empty

    def on_mount(self) -> None:
        """Lay the columns out."""
        for title in self._titles:
            self.add_column(Text(title))

    def show(self, lines: Sequence[Line]) -> None:
        """Put these lines in the place of those before."""
        if not lines:
            blank = tuple(Text() for _ in self._titles[1:])
            lines = [Line("", (Text(self._empty, "dim"), *blank))]
        if [line.key for line in lines] == [key.value for key in self.rows]:
            self._update(lines)
            return
        chosen, offset = self.chosen, self.scroll_offset
        self.clear()
        for line in lines:
            self.add_row(*line.cells, key=line.key)
        keys = [line.key for line in lines]
        if chosen in keys:
            self.move_cursor(row=keys.index(chosen), animate=False, scroll=False)
            self.scroll_to(y=offset.y, animate=False)

    @property
    def chosen(self) -> str | None:
        """Return the key of the line under the cursor; None where there is no line."""
        if not self.is_valid_row_index(self.cursor_row):
            return None
        key = self.coordinate_to_cell_key(Coordinate(self.cursor_row, 0)).row_key.value
        return key or None

    def _update(self, lines: Sequence[Line]) -> None:
        for row, line in enumerate(lines):
            for column, cell in enumerate(line.cells):
                place = Coordinate(row, column)
                if self.get_cell_at(place) != cell:
                    self.update_cell_at(place, cell, update_width=True)
