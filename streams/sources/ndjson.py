"""Lines of JSON to a polars frame: one vectorised read, and a slow path for what it refuses.

Needs polars 2.1: earlier versions crash on deeply nested lines, and the oldest accept lines that
are no objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.schemas import ledger
from tailbudget.streams.sources import fields, scan
from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.lines import Lines, exactly
from tailbudget.streams.sources.repair import Fault, mend

_CHUNK: Final = 512  # a read costs 0.25 ms however short: many lines are retried together
_MAX_COLUMNS: Final = 512
_MAX_NAME: Final = 256
_BEGINNINGS: Final = (b"", b"{", b" ", b"\t", b"\r", b"\n")
"""What lines of JSON objects begin with. polars unpacks what begins as a gzip, zlib or zstd file
does: a message might be a bomb."""
_SWEEP: Final = 256  # batches after which columns that no longer occur are forgotten


@dataclass(frozen=True, slots=True)
class Table:
    """A batch as columns.

    Attributes:
        lines: the records; each line is one.
        frame: one row a readable record; columns as read so far from this source.
        row: [frame.height] index of each row's line.
        faults: (index of the line, why it is no record).
        beyond: names of columns that were left out because there are too many.
    """

    lines: Lines
    frame: pl.DataFrame
    row: NDArray[np.int64]
    faults: tuple[tuple[int, Fault], ...]
    beyond: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Salvage:
    """What was read of a refused batch: frames, (index, text) of their lines, and the faults."""

    frames: list[pl.DataFrame]
    good: list[tuple[int, bytes]]
    faults: list[tuple[int, Fault]]

    def keep(self, frame: pl.DataFrame, pairs: list[tuple[int, bytes]]) -> None:
        self.frames.append(frame)
        self.good.extend(pairs)


class Reader:
    """Reads batches; remembers which columns the source carries, as a schema.

    With a schema polars reads several times faster, but drops columns that are not in it. So the
    keys in the text are counted (fast, and never too few) and compared with the cells read; where
    they differ the keys are looked up, the schema is extended, and the batch is read again. Hence
    no column is ever missed and rows do not depend on how a stream is cut into batches, as long
    as a source carries no more than `_MAX_COLUMNS` columns.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._required = [rules.origin(name) for name in fields.REQUIRED]
        self._schema = {name: self._type(name) for name in self._required}
        self._seen: set[str] = set()
        self._batches = 0

    def read(self, lines: Lines) -> Table:
        """Read a batch; never raises for its content."""
        while True:
            text = lines.blob
            frame = self._read(text, len(lines.lines))
            if frame is None and not lines.exact:
                lines = exactly(lines)
                continue
            row = np.arange(len(lines.lines))
            faults: list[tuple[int, Fault]] = []
            if frame is None:
                salvage = self._salvage(lines.lines)
                frame, faults = pl.concat(salvage.frames), salvage.faults
                row = np.array([index for index, _ in salvage.good], dtype=np.int64)
                text = b"\n".join(line for _, line in salvage.good)
            new, beyond = self._new_columns(frame, text)
            if not new:
                self._forget(frame)
                return Table(lines, frame.rechunk(), row, tuple(faults), beyond)
            self._schema.update({name: self._type(name) for name in sorted(new)})

    def _read(self, blob: bytes, rows: int) -> pl.DataFrame | None:
        """Return the frame, or None where any line is not readable."""
        if blob[:1] not in _BEGINNINGS:
            return None
        try:
            frame = pl.read_ndjson(blob, schema=self._schema)
        except pl.exceptions.PolarsError:
            return None
        return frame if frame.height == rows else None

    def _salvage(self, lines: Sequence[bytes]) -> _Salvage:
        """Read what can be read of a batch that was refused whole."""
        salvage = _Salvage([pl.DataFrame(schema=self._schema)], [], [])
        numbers = [name for name, kind in self._schema.items() if kind == pl.Float64]
        for start in range(0, len(lines), _CHUNK):
            chunk = lines[start : start + _CHUNK]
            frame = self._read(b"\n".join(chunk), len(chunk))
            if frame is not None:
                salvage.keep(frame, list(enumerate(chunk, start)))
                continue
            mended = [(index, mend(line, numbers)) for index, line in enumerate(chunk, start)]
            salvage.faults.extend((i, fault) for i, fault in mended if isinstance(fault, Fault))
            self._settle([(i, line) for i, line in mended if isinstance(line, bytes)], salvage)
        return salvage

    def _settle(self, pairs: list[tuple[int, bytes]], salvage: _Salvage) -> None:
        """Read mended lines; those that are refused even so are found by halving, and given up."""
        frame = self._read(b"\n".join(line for _, line in pairs), len(pairs))
        if frame is not None:
            salvage.keep(frame, pairs)
        elif len(pairs) == 1:
            fault = Fault(ledger.NOT_JSON, "not readable as one JSON object")
            salvage.faults.append((pairs[0][0], fault))
        else:
            half = len(pairs) // 2
            self._settle(pairs[:half], salvage)
            self._settle(pairs[half:], salvage)

    def _new_columns(self, frame: pl.DataFrame, text: bytes) -> tuple[set[str], frozenset[str]]:
        """Return the columns to add to the schema, and those for which there is no room."""
        cells = sum(frame.height - column.null_count() for column in frame.get_columns())
        if not scan.may_hold_more(text, frame, cells):
            return set(), frozenset()
        found = scan.keys(text.split(b"\n")) - self._schema.keys()
        usable = sorted(name for name in found if _is_usable(name))
        room = max(_MAX_COLUMNS - len(self._schema), 0)
        return set(usable[:room]), frozenset(usable[room:])

    def _forget(self, frame: pl.DataFrame) -> None:
        """Drop, now and then, the columns that have not occurred since the last time."""
        rows = frame.height
        self._seen.update(s.name for s in frame.get_columns() if s.null_count() < rows)
        self._batches += 1
        if self._batches % _SWEEP == 0:
            keep = self._seen.union(self._required)
            self._schema = {name: kind for name, kind in self._schema.items() if name in keep}
            self._seen.clear()

    def _type(self, name: str) -> pl.DataType:
        return pl.Float64() if fields.is_read_as_number(name, self._rules) else pl.String()


def _is_usable(name: str) -> bool:
    """Return whether a column can bear the name: not endless, no half of a surrogate pair."""
    return len(name) <= _MAX_NAME and name.isprintable()
