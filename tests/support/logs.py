"""The same requests as logs of every kind, and what was read of a log."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cramjam
import numpy as np
import orjson
import polars as pl

from tailbudget.models.columns import concat
from tailbudget.schemas.records import Columns, Decoded, Rejected

Record = Mapping[str, Any]
NOW_NS = 1_772_532_000 * 10**9  # 2026-03-03T10:00:00Z


def records(count: int, seed: int = 5) -> list[dict[str, Any]]:
    """Return requests with stages, covariates, dimensions, failures, and cells that are missing."""
    rng = np.random.default_rng(seed)
    made: list[dict[str, Any]] = []
    for i in range(count):
        queue, run = (round(float(x), 3) for x in rng.lognormal((1, 4), 0.5))
        made.append(
            {
                "request_id": f"r{i}",
                "timestamp": f"2026-03-02T10:{i // 60 % 60:02}:{i % 60:02}.250Z",
                "status": "timeout" if i % 17 == 3 else 200 if i % 2 else "ok",
                "total_ms": None if i % 17 == 3 else queue + run + 1,
                "timeout_ms": 5_000.0,
                "queue_ms": -queue if i % 29 == 0 else queue,
                "run_ms": None if i % 11 == 0 else run,
                "input_tokens": int(rng.integers(1, 4_000)),
                "route": "ab"[i % 2],
                "region": None if i % 7 == 0 else "eu",
                "cache_hit": i % 3 == 0,
                "pod": f"p{i % 4}",
                "note": f"free text number {i} of many",
            }
        )
    return made


def as_lines(rows: Sequence[Record]) -> bytes:
    """Return JSON lines."""
    return b"".join(orjson.dumps(dict(row)) + b"\n" for row in rows)


def as_array(rows: Sequence[Record]) -> bytes:
    """Return a JSON array over many lines."""
    return orjson.dumps([dict(row) for row in rows], option=orjson.OPT_INDENT_2)


def as_csv(rows: Sequence[Record]) -> bytes:
    """Return a table with names in its first line."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    table = csv.DictWriter(text, names)
    table.writeheader()
    for row in rows:
        table.writerow({k: str(v).lower() if isinstance(v, bool) else v for k, v in row.items()})
    return text.getvalue().encode()


def as_frame(rows: Sequence[Record]) -> pl.DataFrame:
    """Return a frame in which statuses are text, and times dates where all are written alike."""
    frame = pl.DataFrame(
        [{**row, "status": None if (s := row.get("status")) is None else str(s)} for row in rows],
        infer_schema_length=None,
    )
    stamps = [str(row.get("timestamp")) for row in rows]
    if not all(len(text) == len("2026-03-02T10:00:00.250Z") for text in stamps):
        return frame
    return frame.with_columns(pl.col("timestamp").str.to_datetime(time_unit="ns", time_zone="UTC"))


def as_parquet(rows: Sequence[Record], row_group: int = 100) -> bytes:
    """Return a Parquet file of several row groups."""
    file = io.BytesIO()
    as_frame(rows).write_parquet(file, row_group_size=row_group)
    return file.getvalue()


def gz(data: bytes) -> bytes:
    """Compress with gzip."""
    return gzip.compress(data, 1)


def zst(data: bytes) -> bytes:
    """Compress with Zstandard."""
    return bytes(cramjam.zstd.compress(data))


WRITERS: dict[str, Callable[[Sequence[Record]], bytes]] = {
    "jsonl": as_lines,
    "json": as_array,
    "csv": as_csv,
    "parquet": as_parquet,
}


PACKINGS: dict[str, Callable[[bytes], bytes]] = {"": bytes, "gz": gz, "zst": zst}


def write(folder: Path, rows: Sequence[Record], kind: str, name: str = "log") -> Path:
    """Write a log, such as "csv" or "csv.gz"."""
    base, _, packing = kind.partition(".")
    data = WRITERS[base](rows)
    path = folder / f"{name}.{kind}"
    path.write_bytes(PACKINGS[packing](data))
    return path


class Read:
    """All that was read of a log.

    Attributes:
        columns: accepted rows by service.
        ledger: counts by reason.
        rejected: what is no record.
    """

    def __init__(self, reading: Iterable[Decoded]) -> None:
        parts: dict[str, list[Columns]] = {}
        self.ledger: Counter[str] = Counter()
        self.rejected: list[Rejected] = []
        for decoded in reading:
            for one in decoded.services:
                parts.setdefault(one.service, []).append(one)
            self.rejected += decoded.rejected
            for (_, _, reason), count in decoded.ledger.items():
                self.ledger[reason] += count
        self.columns = {name: concat(own) for name, own in parts.items()}

    @property
    def only(self) -> Columns:
        """The rows of the one service."""
        (columns,) = self.columns.values()
        return columns


def cells(columns: Columns) -> dict[str, Any]:
    """Return all that columns hold as plain values, cohorts by row; NaN is None."""
    plain: dict[str, Any] = {
        "ids": list(columns.ids),
        "cohorts": [columns.cohorts[code] for code in columns.cohort],
        "weight": None if columns.weight is None else columns.weight.tolist(),
    }
    for name in ("id_hash", "ts_ns", "outcome", "offset"):
        plain[name] = getattr(columns, name).tolist()
    for name in ("total_ms", "limit_ms"):
        plain[name] = _plain(getattr(columns, name))
    plain["stages"] = dict(zip(columns.stages, map(_plain, columns.stage_ms), strict=True))
    plain["shape"] = dict(zip(columns.covariates, map(_plain, columns.covariate), strict=True))
    return plain


def _plain(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
