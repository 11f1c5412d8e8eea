"""Peak memory of a worker with very many cohorts, in steady state over some panes.

    python tests/bench/memory.py

A producer process sends records of one service with 2,000 cohorts and 7 latency columns at a
steady rate; the worker audits them and writes its panes to the embedded ClickHouse in the same
process, or with `--external` over HTTP to that of another process, as `tailbudget worker` does.
Printed: the peak (VmHWM) and current (VmRSS) resident memory of the worker, as time goes by, what
of it is no page of a file (RssAnon), and what the embedded ClickHouse says of itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from process import ROOT, Child, cpu_s, memory_mb
from rich.console import Console
from rich.table import Table
from stack import WorkerProcess, broker, database, folder


def main() -> int:
    """Run it and print the table."""
    options = _options()
    table = Table(title=f"{options.cohorts:,} cohorts x 7 columns, {options.rate:,.0f} records/s")
    for name in ("after s", "peak MB", "resident MB", "anonymous MB", "ClickHouse MB"):
        table.add_column(name, justify="right")
    for name in ("worker cores", "cohorts"):
        table.add_column(name, justify="right")
    with (
        folder() as home,
        broker(options.bootstrap, embedded=False, home=home) as bootstrap,
        database(home, external=options.external) as clickhouse,
    ):
        worker = WorkerProcess(
            bootstrap,
            home,
            defaults={"slo": "p95=300,p99=500"},
            stream={"max_cohorts": 5000},
            clickhouse=clickhouse,
        )
        with worker, Child(_producer(options, bootstrap, worker.topic, home), log=home / "p.log"):
            began, used = time.monotonic(), cpu_s(worker.pid)
            rows = [("start", *_memory(worker), "", "")]
            while (past_s := time.monotonic() - began) < options.seconds:
                time.sleep(min(10.0, options.seconds - past_s) + 0.01)
                worker.require_alive()
                now = cpu_s(worker.pid)
                cores = f"{(now - used) / 10:.2f}"
                used = now
                rows.append((f"{time.monotonic() - began:.0f}", *_memory(worker), cores, ""))
            sql = "SELECT uniqExact(cohort) FROM panes FINAL WHERE stage = 'total'"
            rows[-1] = (*rows[-1][:-1], str(worker.query(sql)[0][0]))
    for row in rows:
        table.add_row(*row)
    Console(width=100).print(table)
    return 0


def _memory(worker: WorkerProcess) -> tuple[str, ...]:
    sql = "SELECT value FROM system.metrics WHERE metric = 'MemoryTracking'"
    figures = (
        memory_mb(worker.pid, "VmHWM"),
        memory_mb(worker.pid, "VmRSS"),
        memory_mb(worker.pid, "RssAnon"),
        float(worker.query(sql)[0][0]) / 1e6,
    )
    return tuple(f"{value:.0f}" for value in figures)


def _producer(options: argparse.Namespace, bootstrap: str, topic: str, home: Path) -> list[str]:
    values = {
        "--bootstrap": bootstrap,
        "--topic": topic,
        "--log": str(home / "slices.json"),
        "--rate": str(options.rate),
        "--services": "1",
        "--trials": "0",
        "--cohorts": str(options.cohorts),
        "--seconds": str(options.seconds + 10),
        "--calm": "0",
        "--every": "1",
        "--fault": "0",
    }
    flat = [text for pair in values.items() for text in pair]
    return [sys.executable, str(ROOT / "tests/bench/produce.py"), *flat]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", help="a Kafka to use; by default one is started")
    parser.add_argument(
        "--external", action="store_true", help="ClickHouse in another process, as in production"
    )
    parser.add_argument("--cohorts", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=10_000, help="records/s")
    parser.add_argument("--seconds", type=float, default=90)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
