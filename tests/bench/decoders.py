"""Decoders alone, records a second in one thread, beside polars and orjson on the same bytes.

    python tests/bench/decoders.py

No broker: messages are in memory, 5,000 records a batch, one record a message or packed as
`Publisher` packs them. The AIPerf records are those of the test data, over and over.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when polars is imported

import numpy as np
import orjson
import polars as pl
from load import load
from process import ROOT, last_core, pin
from rich.console import Console
from rich.table import Table

from tailbudget.streams.packing import PACK_BYTES, pack
from tailbudget.streams.sources import Rules, ServiceRules, SourceBatch, decoder

RULES = Rules(
    service="bench",
    default=ServiceRules(
        covariates=("input_tokens", "output_tokens", "batch_size", "candidates"),
        cohort_dims=("route", "model_variant", "region", "customer_tier"),
    ),
)
AIPERF = ROOT / "tests/data/aiperf_v0.1_profile_export.jsonl"
BATCH = 5000


def main() -> int:
    """Measure each way and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many runs counts")
    options = parser.parse_args()
    pin(0, last_core())
    native = [line for lines, _ in load(options.records).batches() for line in lines]
    aiperf = _again(AIPERF, options.records // 10)
    table = Table()
    for name in ("what", "bytes a record", "CPU us a record", "records per CPU s", "of polars"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for title, lines in (("native", native), ("aiperf", aiperf)):
        best = [(way, _best(work, lines, options.repeat)) for way, work in _ways(title, lines)]
        for way, each_us in best:
            size = sum(map(len, lines)) / len(lines)
            share = f"{100 * best[0][1] / each_us:.0f} %"
            figures = (f"{size:.0f}", f"{each_us:.2f}", f"{1e6 / each_us:,.0f}", share)
            table.add_row(f"{title}: {way}", *figures)
    Console(width=100).print(table)
    return 0


def _ways(title: str, lines: Sequence[bytes]) -> list[tuple[str, Callable[[], None]]]:
    """Return what is measured: all take the same records, in batches made beforehand."""
    cuts = [lines[low : low + BATCH] for low in range(0, len(lines), BATCH)]
    joined = [b"\n".join(cut) for cut in cuts]
    single = [_batch(list(cut)) for cut in cuts]
    packed = [_batch([p.value for p in pack(_timed(c), max_bytes=PACK_BYTES)]) for c in cuts]
    first = pl.read_ndjson(io.BytesIO(joined[0]))
    one = decoder(title, RULES)
    return [
        ("polars alone", lambda: _each(lambda b: pl.read_ndjson(b, schema=first.schema), joined)),
        ("orjson alone", lambda: _each(orjson.loads, lines)),
        ("our decoder, a record a message", lambda: _each(one.decode, single)),
        ("our decoder, packed messages", lambda: _each(one.decode, packed)),
    ]


def _each(work: Callable[..., object], batches: Sequence[object]) -> None:
    for batch in batches:
        work(batch)


def _best(work: Callable[[], None], lines: Sequence[bytes], repeat: int) -> float:
    """Return the CPU microseconds a record of the best run."""
    spent = []
    for _ in range(repeat):
        before = time.process_time()
        work()
        spent.append(time.process_time() - before)
    return min(spent) / len(lines) * 1e6


def _batch(values: list[bytes]) -> SourceBatch:
    size = len(values)
    return SourceBatch([*values], np.arange(size), np.full(size, time.time_ns()))


def _timed(lines: Sequence[bytes]) -> list[tuple[bytes, int]]:
    return [(line, 0) for line in lines]


def _again(path: Path, count: int) -> list[bytes]:
    lines = path.read_bytes().splitlines()
    return (lines * (count // len(lines) + 1))[:count]


if __name__ == "__main__":
    sys.exit(main())
