"""Reading a large Parquet log for an audit: rows a second and peak memory, beside polars alone.

    python tests/bench/audit_read.py

A log of 10 million requests (6 stages, 2 covariates, 3 dimensions) is written from a seed, and
read by processes of their own: our reading (`open_log`, every row decoded and judged), polars
scanning the same columns in batches and doing nothing with them, and pyarrow likewise. Memory is
the peak resident size (VmHWM) less what the process has once its libraries are loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from process import ROOT, memory_mb
from rich.console import Console
from rich.table import Table

CHUNK = 1_000_000
START_MS = 1_772_445_600_000
NOW_NS = 1_800_000_000 * 10**9
STAGES = {
    "queue": 2.0,
    "tokenize": 0.0,
    "retrieve": 3.0,
    "prefill": 3.0,
    "decode": 5.0,
    "send": 1.0,
}


def main() -> int:
    """Write the log, read it each way, and print the table."""
    options = _options()
    if options.way:
        _measure(options.way, options.log)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        log = options.log or Path(folder) / "log.parquet"
        if not log.exists():
            write(log, options.rows, options.row_group)
        title = f"{options.rows:,} rows, {log.stat().st_size / 1e6:,.0f} MB of Parquet"
        table = Table(title=title)
        for name in ("way", "rows", "rows/s", "CPU us a row", "peak MB", "of polars' speed"):
            table.add_column(name, justify="left" if name == "way" else "right")
        found = {way: _run(way, log) for way in WAYS}
        for way, got in found.items():
            share = found["polars"]["seconds"] / got["seconds"]
            table.add_row(
                way,
                f"{got['rows']:,}",
                f"{got['rows'] / got['seconds']:,.0f}",
                f"{got['cpu_s'] / got['rows'] * 1e6:.2f}",
                f"{got['peak_mb']:,.0f}",
                f"{share:.0%}",
            )
    Console(width=100).print(table)
    return 0


def write(path: Path, rows: int, row_group: int) -> None:
    """Write a log of this many requests, the same for the same numbers."""
    rng = np.random.default_rng(7)
    schema = _chunk(np.random.default_rng(0), 0, 1).to_arrow().schema
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, CHUNK):
            chunk = _chunk(rng, first, min(CHUNK, rows - first)).to_arrow()
            writer.write_table(chunk, row_group_size=row_group)


def _chunk(rng: np.random.Generator, first: int, n: int) -> pl.DataFrame:
    numbers = np.arange(first, first + n)
    stages = {f"{s}_ms": np.round(rng.lognormal(m, 0.5, n), 3) for s, m in STAGES.items()}
    return pl.DataFrame(
        {
            "request_id": pl.Series(numbers).cast(pl.String) + "-7f3a",
            "timestamp": pl.Series(START_MS + numbers).cast(pl.Datetime("ms", "UTC")),
            "status": np.where(rng.random(n) < 0.01, "error", "ok"),
            "total_ms": np.sum(list(stages.values()), axis=0) + 1,
            **stages,
            "input_tokens": rng.integers(1, 4_000, n),
            "batch_size": rng.integers(1, 32, n),
            "route": rng.choice(["search", "chat", "embed", "bulk"], n),
            "region": rng.choice(["eu", "us"], n),
            "customer_tier": rng.choice(["free", "pro", "enterprise"], n),
        }
    )


def ours(log: Path) -> int:
    """Read it as an audit does."""
    from tailbudget.streams.audit_log import open_log  # noqa: PLC0415

    reading = open_log(log, now_ns=NOW_NS)
    return sum(len(columns) for decoded in reading for columns in decoded.services)


def polars(log: Path) -> int:
    """Scan all columns in batches."""
    batches = pl.scan_parquet(log).collect_batches(chunk_size=1 << 17)
    return sum(batch.height for batch in batches)


def pyarrow(log: Path) -> int:
    """Read all columns in batches, a page at a time."""
    table = pq.ParquetFile(log, pre_buffer=False, buffer_size=1 << 20)
    return sum(batch.num_rows for batch in table.iter_batches(batch_size=1 << 17))


WAYS: dict[str, Callable[[Path], int]] = {"ours": ours, "polars": polars, "pyarrow": pyarrow}


def _measure(way: str, log: Path) -> None:
    import tailbudget.streams.audit_log  # noqa: F401, PLC0415 - loaded before the measurement

    before_mb, began, spent = memory_mb(os.getpid(), "VmRSS"), time.monotonic(), time.process_time()
    rows = WAYS[way](log)
    figures = {
        "rows": rows,
        "seconds": time.monotonic() - began,
        "cpu_s": time.process_time() - spent,
        "peak_mb": memory_mb(os.getpid(), "VmHWM") - before_mb,
    }
    print(json.dumps(figures))


def _run(way: str, log: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--way", way, "--log", str(log)]
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--row-group", type=int, default=CHUNK, help="rows of a row group")
    parser.add_argument("--log", type=Path, help="a log to keep, or to read where it exists")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
