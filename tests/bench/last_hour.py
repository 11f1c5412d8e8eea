"""What the picture of an alert costs: from the sketches of an hour's panes, and from its audits.

    python tests/bench/last_hour.py

One service with 360 panes of 10 s in an embedded ClickHouse, and the audits of the minute that
ends with each, as a worker writes them. Printed: milliseconds of either query, the median of
`--runs` after a warm-up, and of drawing what it found.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from clickhouse_store import fresh_store
from random_records import SECOND_NS, T0_NS, random_columns, stored_panes

from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.messages.picture import LastHour, png
from tailbudget.streams.delivery.last_hour import FROM_AUDITS, FROM_PANES

_T = TypeVar("_T")

HOUR_S = 3600


def main() -> int:
    """Run it and print the table."""
    options = _options()
    table = Table(title=f"An hour of {options.routes} routes, {options.requests:,} requests")
    for name in ("from", "query ms", "slowest ms", "minutes"):
        table.add_column(name, justify="right")
    with tempfile.TemporaryDirectory() as home, fresh_store(Path(home)) as store:
        _fill(store, options.requests, [f"r{number}" for number in range(options.routes)])
        first = T0_NS // 10**9
        bounds = {"service": "chat", "since": first, "until": first + HOUR_S - 60}
        for name, sql in (("panes", FROM_PANES), ("audits", FROM_AUDITS)):
            times, rows = _timed(
                partial(_rows, store, sql.format(column="p99_ms"), bounds), options.runs
            )
            figures = (f"{statistics.median(times):.1f}", f"{max(times):.1f}", str(len(rows)))
            table.add_row(name, *figures)
        hour = LastHour("p99", [T0_NS], [1.0])
        drawn, _ = _timed(lambda: png(hour), options.runs)
        table.add_row("drawing", f"{statistics.median(drawn):.1f}", f"{max(drawn):.1f}", "")
    Console(width=100).print(table)
    return 0


def _rows(store: ClickHouse, sql: str, bounds: Mapping[str, Any]) -> Sequence[Any]:
    return store.query(sql, bounds).rows


def _timed(work: Callable[[], _T], runs: int) -> tuple[list[float], _T]:
    found, times = work(), []
    for _ in range(runs):
        began = time.perf_counter()
        found = work()
        times.append((time.perf_counter() - began) * 1e3)
    return times, found


def _fill(store: ClickHouse, requests: int, routes: list[str]) -> None:
    columns = random_columns(1, requests, routes=routes, span_s=HOUR_S)
    store.write_panes(stored_panes(columns))
    ends = range(T0_NS + 10 * SECOND_NS, T0_NS + (HOUR_S + 1) * SECOND_NS, 10 * SECOND_NS)
    payload = "x" * 20_000  # An audit as JSON is about as long.
    rows = [AuditRow("chat", 60, at, 1, "ok", 10, 0, p99_ms=9.0, payload=payload) for at in ends]
    for row in rows:
        store.write_audits([row])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=360_000)
    parser.add_argument("--routes", type=int, default=20)
    parser.add_argument("--runs", type=int, default=20)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
