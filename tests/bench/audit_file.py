"""The whole audit of a large Parquet log, beside scripts that compute its percentiles alone.

    python tests/bench/audit_file.py

The log is that of `audit_read.py`. Ours is all that `tailbudget audit LOG --format json` does
after start: reading, summing up, every section of the report, and JSON. The scripts are what an
analyst writes instead: p50, p95 and p99 of the total and of each stage, in duckdb or polars. Each
runs in a process of its own; memory is the peak resident size (VmHWM) less what the process has
once its libraries are loaded. `--profile FILE` writes cProfile's figures of ours.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from audit_read import CHUNK, NOW_NS, STAGES, write
from process import ROOT, memory_mb
from rich.console import Console
from rich.table import Table

COLUMNS = ["total_ms", *(f"{stage}_ms" for stage in STAGES)]
QUANTILES = (0.5, 0.95, 0.99)


def main() -> int:
    """Write the log, audit it each way, and print the table."""
    options = _options()
    if options.way:
        _measure(options.way, options.log, options.profile)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        log = options.log or Path(folder) / "log.parquet"
        if not log.exists():
            write(log, options.rows, options.row_group)
        rows = pl.scan_parquet(log).select(pl.len()).collect().item()
        table = Table(title=f"{rows:,} rows, {log.stat().st_size / 1e6:,.0f} MB of Parquet")
        for name in ("way", "s", "rows/s", "CPU us a row", "peak MB", "of ours"):
            table.add_column(name, justify="left" if name == "way" else "right")
        ways = [way for way in WAYS if way != "duckdb" or importlib.util.find_spec("duckdb")]
        found = {way: _run(way, log, options.profile) for way in ways}
        for way, got in found.items():
            table.add_row(
                way,
                f"{got['seconds']:.1f}",
                f"{rows / got['seconds']:,.0f}",
                f"{got['cpu_s'] / rows * 1e6:.2f}",
                f"{got['peak_mb']:,.0f}",
                f"{got['cpu_s'] / found['ours']['cpu_s']:.0%}",
            )
    Console(width=100).print(table)
    return 0


def ours(log: Path) -> None:
    """Draw the whole report."""
    from tailbudget.schemas.settings import Settings  # noqa: PLC0415
    from tailbudget.schemas.slo import SloTarget  # noqa: PLC0415
    from tailbudget.streams.audit_log import Wanted  # noqa: PLC0415
    from tailbudget.streams.log_report import Asked, make  # noqa: PLC0415
    from tailbudget.streams.rendering import render  # noqa: PLC0415

    slo = SloTarget(p95_ms=400.0, p99_ms=600.0)
    asked = Asked(source=log, wanted=Wanted(), now_ns=NOW_NS, slo=slo)
    render(make(Settings(), asked).audit, "json")


def polars(log: Path) -> None:
    """Compute nearest ranks in polars, streamed."""
    wanted = [
        pl.col(name).quantile(q, "nearest").alias(f"{name} {q}")
        for name in COLUMNS
        for q in QUANTILES
    ]
    pl.scan_parquet(log).select(wanted).collect(engine="streaming")


def duckdb(log: Path) -> None:
    """Compute the same in duckdb."""
    engine = importlib.import_module("duckdb")  # where it is installed

    wanted = ", ".join(f"quantile_disc({name}, {list(QUANTILES)})" for name in COLUMNS)
    engine.sql(f"SELECT {wanted} FROM read_parquet('{log}')").fetchall()


WAYS: dict[str, Callable[[Path], None]] = {"ours": ours, "polars": polars, "duckdb": duckdb}


def _measure(way: str, log: Path, profile: Path | None) -> None:
    # Loaded before the measurement.
    import tailbudget.streams.log_report  # noqa: PLC0415
    import tailbudget.streams.rendering  # noqa: F401, PLC0415

    before_mb, began, spent = memory_mb(os.getpid(), "VmRSS"), time.monotonic(), time.process_time()
    if profile and way == "ours":
        watched = cProfile.Profile()
        watched.runcall(WAYS[way], log)
        watched.dump_stats(profile)
    else:
        WAYS[way](log)
    figures = {
        "seconds": time.monotonic() - began,
        "cpu_s": time.process_time() - spent,
        "peak_mb": memory_mb(os.getpid(), "VmHWM") - before_mb,
    }
    print(json.dumps(figures))


def _run(way: str, log: Path, profile: Path | None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--way", way, "--log", str(log)]
    command += ["--profile", str(profile)] if profile else []
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
    parser.add_argument("--profile", type=Path, metavar="FILE", help="cProfile's figures of ours")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
