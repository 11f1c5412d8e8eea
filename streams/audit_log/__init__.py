"""Logs of requests, of any kind, as the records that the stream decodes.

`open_log`, `open_frame` and `open_sql` give a `LogReading`: what was found, and an iterator of
`Decoded`. It is read in this order:

1. `wanted` is what the caller named;
2. `files` lists the files, `opened` takes off compression, `kinds` tells what they are;
3. `json_text` and `tables` cut them into `blocks`, in bounded memory;
4. `sample` looks at the first rows, `discovery` (by `names`) decides what the columns mean, and
   `latency` and `aggregates` refuse what holds no request;
5. `reading` gives the blocks to `streams.sources`, whose decoders judge every row as they do in
   the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.streams.audit_log.files import parts_of
from tailbudget.streams.audit_log.frames import FramePart, SqlPart
from tailbudget.streams.audit_log.reading import Log, LogReading
from tailbudget.streams.audit_log.wanted import (
    Found,
    Progress,
    Wanted,
    parse_columns,
    parse_format,
)

_EVERYTHING = Wanted()


def open_log(
    path: Path,
    wanted: Wanted = _EVERYTHING,
    progress: Callable[[Progress], None] = lambda _: None,
    *,
    now_ns: int,
) -> LogReading:
    """Open a file or a directory; "-" is standard input.

    Args:
        path: Parquet, CSV, JSON lines or JSON, also as .gz or .zst, or a directory of those.
        wanted: what is known of it.
        progress: told, after each block, how far the reading is.
        now_ns: the time of reading, nanoseconds since the epoch: a row that is younger is
            quarantined, and where no row has a time all bear this one.

    Raises:
        Refused: there is no request to audit in it; iterating may find so too.
        ConfigError: there is no such file, or no column that was named.
        DecodeError: a file is damaged, or no log; iterating may find so too.
    """
    parts, others = parts_of(path, wanted.format)
    said = (f"files that are no log by their name: {', '.join(others)}",) if others else ()
    name = "standard input" if str(path) == "-" else str(path)
    return LogReading(Log(name, parts, said), wanted, now_ns, progress)


def open_frame(frame: object, wanted: Wanted = _EVERYTHING, *, now_ns: int) -> LogReading:
    """Open a frame of polars, pandas or pyarrow; raises as `open_log` does."""
    return LogReading(Log("the frame", [FramePart(frame)]), wanted, now_ns, lambda _: None)


def open_sql(
    target: ClickHouseTarget,
    query: str,
    wanted: Wanted = _EVERYTHING,
    progress: Callable[[Progress], None] = lambda _: None,
    *,
    now_ns: int,
) -> LogReading:
    """Open the answer of a query that only reads; raises as `open_log` does, and what follows.

    Raises:
        ClickHouseError: ClickHouse does not answer.
        ConfigError: the query is wrong, or more than reading.
    """
    return LogReading(Log("the query", [SqlPart(target, query)]), wanted, now_ns, progress)


__all__ = [
    "Found",
    "LogReading",
    "Progress",
    "Wanted",
    "open_frame",
    "open_log",
    "open_sql",
    "parse_columns",
    "parse_format",
]
