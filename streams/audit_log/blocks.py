"""Pieces of a log: some of its rows, as they stand there, with their row numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.schemas.records import Rejected

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Records as JSON text.

    Attributes:
        format: name of their decoder.
        values: [n] one record each.
        row: [n] row number of each.
        end: number of the row after the block.
    """

    format: str
    values: list[bytes]
    row: Ints
    end: int

    def head(self, rows: int) -> LineBlock:
        """Return the first rows."""
        return replace(self, values=self.values[:rows], row=self.row[:rows])

    def moved(self, base: int) -> LineBlock:
        """Return the same with row numbers that count on from `base`."""
        return replace(self, row=self.row + base, end=self.end + base)


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """Records as columns.

    Attributes:
        format: of the file.
        frame: [n] one record each.
        row: [n] row number of each.
        end: number of the row after the block.
        rejected: rows of the same piece that are no records.
    """

    format: str
    frame: pl.DataFrame
    row: Ints
    end: int
    rejected: tuple[Rejected, ...] = ()

    def head(self, rows: int) -> FrameBlock:
        """Return the first rows."""
        return replace(self, frame=self.frame.head(rows), row=self.row[:rows], rejected=())

    def moved(self, base: int) -> FrameBlock:
        """Return the same with row numbers that count on from `base`."""
        dead = tuple(replace(one, offset=one.offset + base) for one in self.rejected)
        return replace(self, row=self.row + base, end=self.end + base, rejected=dead)


Block = LineBlock | FrameBlock


class Part(Protocol):
    """A file, a frame or a query; its blocks are read once.

    Attributes:
        name: for messages.
        size_bytes: of the file; 0 where it is unknown.
        head: the first bytes of its text, once reading has begun; empty where it has none.
    """

    name: str
    size_bytes: int
    head: bytes

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, rows numbered from 0.

        Raises:
            DecodeError: it is damaged, or not of its format.
            ConfigError: it cannot be opened.
        """
        ...

    def share(self) -> float | None:
        """Return how much of it has been read; None when that is unknown."""
        ...


def whole(format_name: str, frame: pl.DataFrame, first: int) -> FrameBlock:
    """Return a frame of which every row is a record."""
    end = first + frame.height
    return FrameBlock(format_name, frame, np.arange(first, end), end)
