"""Rows of the table `panes` as flat arrays, and their places in the arrays of a summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailbudget.schemas.summary import TOTAL


class FlatRows:
    """FlatRows of all panes as flat arrays, each made once."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._lists: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}

    def texts(self, name: str, first: int, last: int) -> list[str]:
        """Texts of some rows."""
        found: list[str] = self.table[name].slice(first, last - first).to_pylist()
        return found

    def numbers(self, name: str, first: int, last: int) -> NDArray[Any]:
        """A number a row, of some rows."""
        return self.lists(name)[0][first:last]

    def lists(self, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """All values of a column and where each row's begin and end."""
        if name not in self._lists:
            column = _chunk(self.table, name)
            if pa.types.is_list(column.type):
                # Offsets of a slice of a larger array do not begin at 0.
                offsets = _array(column.offsets)
                self._lists[name] = (_array(column.flatten()), offsets - offsets[0])
            else:
                self._lists[name] = (_array(column), np.zeros(0, np.int32))
        return self._lists[name]


class Cells:
    """The rows of one pane, and where they go in [G, S] arrays."""

    def __init__(self, header: pa.Table, rows: FlatRows, at: slice) -> None:
        first, last = at.start, at.stop
        self._rows, self._first, self._last = rows, first, last
        self.service: str = header["service"][0].as_py()
        self.stages = tuple(header["stages"][0].as_py())
        self.covariates = tuple(header["covariates"][0].as_py())
        self.thresholds_ms = tuple(header["thresholds_ms"][0].as_py())
        texts = rows.texts("cohort", first, last)
        self.texts = sorted(set(texts))
        groups = {text: group * len(self.stages) for group, text in enumerate(self.texts)}
        places = {stage: place for place, stage in enumerate(self.stages)}
        stages = rows.texts("stage", first, last)
        self.cell = np.array(
            [groups[text] + places[stage] for text, stage in zip(texts, stages, strict=True)],
            np.int64,
        )
        self.total = np.flatnonzero(self.cell % max(len(places), 1) == places.get(TOTAL, 0))
        self.shape = (len(self.texts), len(self.stages))

    def spread(self, name: str, missing: float = 0) -> NDArray[Any]:
        """A number a row, as [G, S]."""
        values = signed(self._rows.numbers(name, self._first, self._last))
        cells = np.full(self.shape[0] * self.shape[1], missing, values.dtype)
        cells[self.cell] = values
        return cells.reshape(self.shape)

    def of_total(self, name: str) -> NDArray[Any]:
        """A number a group, from the rows of the total, as it was stored."""
        return self._rows.numbers(name, self._first, self._last)[self.total]

    def flat(self, name: str) -> NDArray[Any]:
        """All values of a column of lists, in the order of the cells, as they were stored."""
        values, offsets = self._rows.lists(name)
        # A copy: a view would keep the columns of all panes in memory.
        return values[offsets[self._first] : offsets[self._last]].copy()

    def counts(self, name: str) -> NDArray[np.int64]:
        """All values of a column of lists of counts."""
        return self.flat(name).astype(np.int64)

    def lengths(self, name: str) -> NDArray[np.int64]:
        """How many values each row has in a column of lists."""
        offsets = self._rows.lists(name)[1][self._first : self._last + 1]
        return np.diff(offsets).astype(np.int64)

    def by_covariate(self, name: str, *inner: int) -> NDArray[Any]:
        """Lists a row, as [G, C, S, …]."""
        groups, stages = self.shape
        width = len(self.covariates)
        values = signed(self.flat(name))
        cells = np.zeros((groups * stages, width, *inner), values.dtype)
        cells[self.cell] = values.reshape(len(self.cell), width, *inner)
        turned = np.swapaxes(cells.reshape(groups, stages, width, *inner), 1, 2)
        return np.ascontiguousarray(turned)


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts, of which few are distinct.

    Attributes:
        index: [rows] which of the distinct texts a row has.
        distinct: the distinct texts.
    """

    index: NDArray[np.int32]
    distinct: list[str]

    def equal(self, text: str) -> NDArray[np.bool_]:
        """Return which rows have the text."""
        number = self.distinct.index(text) if text in self.distinct else -1
        return np.equal(self.index, number)

    def ranks(self, key: Callable[[str], Any]) -> NDArray[np.int64]:
        """Return the rank of each row's text among the distinct ones, by a key."""
        ranks = np.empty(len(self.distinct), np.int64)
        order = sorted(range(len(ranks)), key=lambda number: key(self.distinct[number]))
        ranks[order] = np.arange(len(ranks))
        return ranks[self.index]


def column_texts(table: pa.Table, name: str) -> Texts:
    """Return a column of texts."""
    column = _chunk(table, name).dictionary_encode()
    return Texts(_array(column.indices), column.dictionary.to_pylist())


def column_numbers(table: pa.Table, name: str) -> NDArray[Any]:
    """Return a column of numbers, as it was stored."""
    return _array(_chunk(table, name))


def signed(values: NDArray[Any]) -> NDArray[Any]:
    """Counts are unsigned in ClickHouse and signed here, where they are subtracted."""
    return values.astype(np.int64) if values.dtype == np.uint64 else values


def _chunk(table: pa.Table, name: str) -> pa.Array:
    column = table[name].combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _array(array: pa.Array) -> NDArray[Any]:
    values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return values
