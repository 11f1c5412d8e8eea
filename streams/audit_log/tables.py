"""Records of tables, a block at a time: CSV, Parquet, and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from tailbudget.schemas import ledger
from tailbudget.schemas.errors import ConfigError, DecodeError
from tailbudget.schemas.records import Rejected
from tailbudget.streams.audit_log.blocks import FrameBlock, whole
from tailbudget.streams.audit_log.kinds import delimiter_of
from tailbudget.streams.audit_log.wanted import CSV, PARQUET
from tailbudget.streams.sources.frames import text_of_bytes

ROWS: Final = 1 << 17
"""Rows of a block: more take more memory and are no faster."""

_CSV_BYTES: Final = 1 << 24


def csv_blocks(stream: IO[bytes], head: bytes, name: str) -> Iterator[FrameBlock]:
    """Yield the rows of a table as text; an empty cell is missing.

    A row of more or fewer cells than there are names is rejected.

    Args:
        stream: the text, its first line the names.
        head: its first bytes.
        name: of the file, for messages.

    Raises:
        DecodeError: a name stands twice.
    """
    names = _header(head, name)
    if not names or b"\n" not in head.strip():
        return  # names alone, which the reader refuses
    bad: list[Any] = []

    def skip(row: Any) -> str:
        bad.append(row)
        return "skip"

    reader = pa_csv.open_csv(
        stream,
        read_options=pa_csv.ReadOptions(block_size=_CSV_BYTES, use_threads=False),
        parse_options=pa_csv.ParseOptions(
            delimiter=delimiter_of(head), newlines_in_values=True, invalid_row_handler=skip
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types={column: pa.string() for column in names},
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    first = 0
    for batch in reader:
        block = _with_bad(_polars(batch), bad, first)
        bad[:] = [row for row in bad if _number(row) >= block.end]
        first = block.end
        yield block
    if bad:
        yield FrameBlock(CSV, pl.DataFrame(), np.zeros(0, np.int64), first, _dead(bad))


def parquet_blocks(file: IO[bytes]) -> Iterator[tuple[FrameBlock, float]]:
    """Yield the rows and which share of them that is; a row group is never in memory whole."""
    table = pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
    total, first = table.metadata.num_rows, 0
    for batch in table.iter_batches(batch_size=ROWS):
        block = whole(PARQUET, _polars(batch), first)
        first = block.end
        yield block, first / max(total, 1)


def frame_blocks(frame: pl.DataFrame, format_name: str) -> Iterator[FrameBlock]:
    """Yield the rows of a frame."""
    frame = _readable(frame)
    for first in range(0, frame.height, ROWS):
        yield whole(format_name, frame.slice(first, ROWS), first)


def arrow_blocks(batches: Iterable[Any], format_name: str) -> Iterator[FrameBlock]:
    """Yield the rows of Arrow's record batches."""
    first = 0
    for batch in batches:
        for block in frame_blocks(_polars(batch), format_name):
            yield block.moved(first)
        first += batch.num_rows


def as_polars(frame: object) -> pl.DataFrame:
    """Return a frame of polars, pandas or Arrow (whatever has its stream interface) as polars.

    In pandas, where there was no other way to write it, NaN is a missing cell.

    Raises:
        ConfigError: it is none of these.
    """
    if isinstance(frame, pl.LazyFrame):
        return frame.collect(engine="streaming")
    if isinstance(frame, pl.DataFrame):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas":
        return pl.from_pandas(cast(Any, frame), nan_to_null=True)
    if isinstance(frame, pa.Table | pa.RecordBatch) or hasattr(frame, "__arrow_c_stream__"):
        return cast(pl.DataFrame, pl.from_arrow(cast(Any, frame)))
    raise ConfigError(
        f"a {type(frame).__name__} is no frame", remedy="give one of polars, pandas or pyarrow"
    )


def _polars(batch: Any) -> pl.DataFrame:
    frame = cast(pl.DataFrame, pl.from_arrow(batch))
    uuids = [field.name for field in batch.schema if isinstance(field.type, pa.UuidType)]
    return _readable(frame.with_columns(_uuid(name) for name in uuids) if uuids else frame)


def _readable(frame: pl.DataFrame) -> pl.DataFrame:
    """Return bytes as the text that they mostly are."""
    raw = [series for series in frame.get_columns() if series.dtype == pl.Binary]
    return frame.with_columns(map(text_of_bytes, raw)) if raw else frame


def _uuid(name: str) -> pl.Expr:
    """Return UUIDs, which Arrow has as 16 bytes, as they are written."""
    text = pl.col(name).bin.encode("hex")
    ends = ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))
    return pl.concat_str([text.str.slice(*part) for part in ends], separator="-").alias(name)


def _header(head: bytes, name: str) -> list[str]:
    text = io.StringIO(head.decode("utf-8-sig", errors="replace"))
    names = next(csv.reader(text, delimiter=delimiter_of(head)), [])
    twice = sorted({column for column in names if names.count(column) > 1})
    if twice:
        raise DecodeError(
            f"{name}: the column {twice[0]!r} stands twice in the first line",
            remedy="give each column a name of its own",
        )
    return names


def _with_bad(frame: pl.DataFrame, bad: list[Any], first: int) -> FrameBlock:
    """Number the rows, around those that were left out; the reader may be ahead with these."""
    wanted = np.arange(first, first + frame.height + len(bad))
    row = np.setdiff1d(wanted, [_number(one) for one in bad])[: frame.height]
    end = int(row[-1]) + 1 if len(row) else first
    return FrameBlock(CSV, frame, row, end, _dead([one for one in bad if _number(one) < end]))


def _number(row: Any) -> int:
    """Return the number of a row that the reader counts from 1, the names included."""
    return int(row.number) - 2


def _dead(bad: list[Any]) -> tuple[Rejected, ...]:
    return tuple(
        Rejected(
            _number(row),
            ledger.NOT_OBJECT,
            f"{row.actual_columns} cells under {row.expected_columns} names",
            (row.text or "").encode()[:1024],
        )
        for row in bad
    )
