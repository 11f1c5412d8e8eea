"""The first rows of a log, column by column: what discovery looks at, and all that it looks at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

from tailbudget.streams.audit_log.blocks import Block, FrameBlock, LineBlock
from tailbudget.streams.sources import FORMATS, fields, repair
from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.timetext import NAIVE

ROWS: Final = 10_000
"""Rows of the sample. A value that one row in a thousand has is then missed once in 22,000 logs
(0.999 ^ 10,000), and they are read in a fraction of a second."""

MANY: Final = 50
"""Distinct values beyond which they are not counted. A cohort needs 1,000 requests for its p99,
so that logs of below 50,000 rows could not fill more; and a table of more is not read."""

_LONGEST: Final = 64
_SPACES: Final = 2
"""Text that is longer, or of more words, is a sentence and no label."""

_NUMBERS: Final = frozenset({int, float})
NATIVE: Final = "native"
_NESTED: Final = "(nested)"
_FLAGS: Final = frozenset({"0", "1", "true", "false"})


@dataclass(slots=True)
class Column:
    """What the sample says of one column.

    Attributes:
        name: its name, ours where it was mapped.
        n: cells that are not missing.
        numbers: cells that are numbers, or text that is one.
        values: distinct values as text and how many cells have each, until there are too many.
        free: some value is long, of several words, or nested.
    """

    name: str
    n: int = 0
    numbers: int = 0
    values: dict[str, int] | None = field(default_factory=dict)
    free: bool = False

    @property
    def is_numeric(self) -> bool:
        """Whether every cell is a number."""
        return self.numbers == self.n > 0

    @property
    def is_flag(self) -> bool:
        """Whether every value is 0, 1, true or false."""
        return self.values is not None and {v.lower() for v in self.values} <= _FLAGS

    def add(self, cell: Any) -> None:
        """Look at one cell that is not missing."""
        self.n += 1
        plain = type(cell) in _NUMBERS
        if plain and self.values is None:
            self.numbers += 1
            return
        text = _text(cell)
        if plain or (isinstance(cell, str) and _is_number(text)):
            self.numbers += 1
        elif len(text) > _LONGEST or text.count(" ") > _SPACES or isinstance(cell, list | dict):
            self.free = True
        if self.values is not None:
            self.values[text] = self.values.get(text, 0) + 1
            if len(self.values) > MANY:
                self.values = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The first rows of a log.

    Attributes:
        rows: how many were read, readable or not.
        records: how many of them were records.
        columns: those that hold anything, by name.
        naive_times: some timestamp is text, or a date, without a zone.
        labels: for each record, its values of columns with few values; for counting cohorts.
    """

    rows: int
    records: int
    columns: dict[str, Column]
    naive_times: bool
    labels: list[dict[str, str]]


def sample_of(blocks: Iterable[Block], rules: Rules) -> Sample:
    """Look at blocks that hold `ROWS` rows or all of the log."""
    rows = 0
    records: list[dict[str, Any]] = []
    for block in blocks:
        part = block.head(ROWS - rows)
        rows += len(part.row)
        records += _records(part, rules)
        if rows >= ROWS:
            break
    columns: dict[str, Column] = {}
    named = [_ours(record, rules) for record in records]
    for record in named:
        for name, cell in record.items():
            columns.setdefault(name, Column(name)).add(cell)
    few = {name for name, column in columns.items() if column.values is not None}
    labels = [{name: _text(record[name]) for name in few & record.keys()} for record in named]
    naive = any(_is_naive(record.get(fields.TIME)) for record in named)
    return Sample(rows, len(records), columns, naive, labels)


def _records(block: Block, rules: Rules) -> list[dict[str, Any]]:
    mapping = rules.mapping
    if isinstance(block, FrameBlock) and mapping is not None:
        return [mapping.record(row) for row in block.frame.to_dicts()]
    if isinstance(block, LineBlock) and mapping is not None and block.format == NATIVE:
        found = (_read(value) for value in block.values)
        return [mapping.record(record) for record in found if record is not None]
    if isinstance(block, LineBlock):
        found = (_read(native) for native in FORMATS[block.format].natives(block.values, rules))
        return [record for record in found if record is not None]
    return block.frame.to_dicts()


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            record = repair.read(line.removeprefix(repair.BOM).decode())
        except (ValueError, RecursionError):
            return None
    return record if isinstance(record, dict) else None


def _ours(record: dict[str, Any], rules: Rules) -> dict[str, Any]:
    cells = ((column, cell) for column, cell in record.items() if cell is not None and cell != "")
    if not rules.columns:
        return dict(cells)
    return {name: cell for column, cell in cells for name in rules.ours(column)}


def _is_naive(stamp: object) -> bool:
    if isinstance(stamp, datetime):
        return stamp.tzinfo is None
    return isinstance(stamp, str) and NAIVE.fullmatch(stamp) is not None


def _is_number(text: str) -> bool:
    return repair.as_number(text) not in {None, repair.NOT_A_NUMBER}


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, list | dict):
        return _NESTED  # no label, and its text may be without end
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)
