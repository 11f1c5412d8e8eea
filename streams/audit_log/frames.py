"""Data frames and answers of ClickHouse as parts of a log; see `blocks.Part`."""

from __future__ import annotations

from collections.abc import Iterator

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.streams.audit_log.blocks import Block
from tailbudget.streams.audit_log.tables import arrow_blocks, as_polars, frame_blocks


class FramePart:
    """A frame that the caller has in memory."""

    name = "the frame"
    size_bytes = 0
    head = b""

    def __init__(self, frame: object) -> None:
        self._frame = as_polars(frame)
        self._share = 0.0

    def share(self) -> float | None:
        """Return how much of it has been read."""
        return self._share

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, rows numbered from 0."""
        for block in frame_blocks(self._frame, "frame"):
            self._share = block.end / self._frame.height
            yield block


class SqlPart:
    """The answer of a query, in the blocks in which ClickHouse gives it."""

    name = "the query"
    size_bytes = 0
    head = b""

    def __init__(self, target: ClickHouseTarget, query: str) -> None:
        self._target = target
        self._query = query

    def share(self) -> float | None:
        """Return None: how much there will be is unknown."""
        return None

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, rows numbered from 0."""
        # Here, so that an audit of a file starts without the libraries of a database.
        from tailbudget.sinks.clickhouse.stream import stream  # noqa: PLC0415

        yield from arrow_blocks(stream(self._target, self._query), "sql")
