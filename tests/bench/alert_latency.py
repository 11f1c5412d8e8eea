"""From the record that makes a breach certain to the message in chat, under load.

    python tests/bench/alert_latency.py --rate 50000 --rate 20000

A producer process sends healthy records of many services; one service after another turns 20
times slower. A worker process judges, and a receiver in this process stands for the chat channel.

Two latencies are taken for each service:

- decidable: from the time of the first record with which the alert rule holds. It is the first
  at which, among all of the service's records of the judged minute up to it, those over the p99
  target are more than 1 % and more than chance explains (`models.breach`), computed from the
  producer's log; the message cannot come before that record exists.
- first slow: from the time of the service's first slow record. It includes the time in which a
  minute of healthy requests still outweighs the slow ones, which is the rule's, not the system's.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from process import ROOT, Child, cpu_s
from rich.console import Console
from rich.table import Table
from stack import WorkerProcess, broker, folder

from tailbudget.models.binomial import upper_tail
from tailbudget.models.breach import CHANCE
from tailbudget.models.ranks import requests_needed
from tailbudget.schemas.slo import QUANTILES

SLO: Final = {"p95_ms": 300.0, "p99_ms": 500.0}
_SHARE: Final = 0.01
_WINDOW_NS: Final = 60_000_000_000
_PANE_NS: Final = 10_000_000_000
_CALM_S: Final = 15.0
_FAULT_S: Final = 2.5
_TAIL_S: Final = 8.0


@dataclass(slots=True)
class Receiver:
    """A chat channel that notes when the first firing message about each service came.

    Attributes:
        at_ns: service to time of receipt.
    """

    at_ns: dict[str, int] = field(default_factory=dict)

    def start(self) -> ThreadingHTTPServer:
        """Serve in a thread of its own; returns the server, to be shut down."""
        notes = self.at_ns

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                now_ns = time.time_ns()
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                title = str(json.loads(text).get("title", ""))
                found = re.search(r"\[FIRING\] (service-\d+)", title)
                if found:
                    notes.setdefault(found[1], now_ns)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server


@dataclass(frozen=True, slots=True)
class Run:
    """What one rate gave.

    Attributes:
        rate: records per second that the producer reached.
        behind_ms: most that the producer was behind its schedule.
        worker_cpu: cores that the worker used.
        lag: records that the worker had not read when the producer ended.
        decidable_s: [trials] latencies from the decidable record.
        first_slow_s: [trials] latencies from the first slow record.
        missed: services whose message never came.
    """

    rate: float
    behind_ms: float
    worker_cpu: float
    lag: int
    decidable_s: NDArray[np.float64]
    first_slow_s: NDArray[np.float64]
    missed: int


def decidable_ns(ts_ns: NDArray[np.int64], slow: NDArray[np.bool_]) -> int | None:
    """Return the time of the first record with which the p99 rule holds; None without one.

    Args:
        ts_ns: [n] times of a service's records, ascending.
        slow: [n] which of them are over the target.
    """
    begin = int(np.argmax(slow))
    seen, over = np.arange(1, len(slow) + 1), np.cumsum(slow)
    for k in range(begin, len(slow)):
        # The judged minute is of whole panes, the open one included.
        start_ns = ts_ns[k] - ts_ns[k] % _PANE_NS + _PANE_NS - _WINDOW_NS
        before = int(np.searchsorted(ts_ns, start_ns))
        n = int(seen[k]) - before
        bad = int(over[k]) - (int(over[before - 1]) if before else 0)
        enough = n >= requests_needed(QUANTILES["p99"])
        if enough and bad > n * _SHARE and upper_tail(bad, n, _SHARE) < CHANCE:
            return int(ts_ns[k])
    return None


def main() -> int:
    """Run each rate and print the table."""
    options = _options()
    runs = []
    with folder() as home, broker(options.bootstrap, embedded=False, home=home) as bootstrap:
        for number, rate in enumerate(options.rate or [50_000, 20_000, 5_000]):
            place = home / str(number)
            place.mkdir()
            runs.append(_run(options, bootstrap, place, rate))
            Console(width=120).print(_table(runs[-1:]))
    Console(width=120).print(_table(runs))
    return 0


def _run(options: argparse.Namespace, bootstrap: str, home: Path, rate: float) -> Run:
    receiver = Receiver()
    server = receiver.start()
    chat = [{"name": "bench", "url": f"json://127.0.0.1:{server.server_address[1]}/"}]
    worker = WorkerProcess(bootstrap, home, defaults={"slo": SLO}, chat=chat)
    seconds = _CALM_S + options.every * options.trials + _TAIL_S
    log = home / "slices.json"
    values = {
        "--bootstrap": bootstrap,
        "--topic": worker.topic,
        "--log": str(log),
        "--rate": str(rate),
        "--services": str(options.trials),
        "--cohorts": str(options.cohorts),
        "--seconds": str(seconds),
        "--calm": str(_CALM_S),
        "--every": str(options.every),
        "--fault": str(_FAULT_S),
    }
    command = [sys.executable, str(ROOT / "tests/bench/produce.py")]
    command += [text for pair in values.items() for text in pair]
    try:
        with worker, Child(command, log=home / "producer.log") as producer:
            time.sleep(_CALM_S)
            before, since = cpu_s(worker.pid), time.monotonic()
            while not log.exists():
                worker.require_alive()
                if producer.ended and not log.exists():
                    raise RuntimeError(f"the producer ended:\n{producer.output}")
                time.sleep(0.2)
            used = (cpu_s(worker.pid) - before) / (time.monotonic() - since)
            lag = _pending(worker)
            time.sleep(_TAIL_S / 2)
    finally:
        server.shutdown()
    return _measure(json.loads(log.read_bytes()), receiver.at_ns, used, lag, options.trials)


def _pending(worker: WorkerProcess) -> int:
    return sum(int(source["records_pending"]) for source in worker.status()["ingest"].values())


def _measure(
    told: dict[str, Any], received: dict[str, int], used: float, lag: int, trials: int
) -> Run:
    at_ns, step_ns, count, faulty = np.array(told["slices"], np.int64).T
    each = int(count[0])
    ts_ns = (at_ns[:, None] + np.arange(each) * step_ns[:, None]).ravel()
    service = np.arange(len(ts_ns)) % trials
    fault = np.repeat(faulty, count)
    decidable, first = [], []
    for trial in range(trials):
        mine = service == trial
        times, slow = ts_ns[mine], fault[mine] == trial
        came_ns = received.get(f"service-{trial:02d}")
        certain_ns = decidable_ns(times, slow)
        if came_ns is None or certain_ns is None:
            continue
        decidable.append((came_ns - certain_ns) / 1e9)
        first.append((came_ns - int(times[int(np.argmax(slow))])) / 1e9)
    return Run(
        told["rate"],
        told["late_ms"],
        used,
        lag,
        np.array(decidable),
        np.array(first),
        trials - len(decidable),
    )


def _table(runs: list[Run]) -> Table:
    table = Table(title="seconds from a record to the message in chat")
    names = (
        "records/s",
        "producer behind",
        "worker cores",
        "alerts",
        "decidable: p50",
        "p95",
        "max",
    )
    for name in (*names, "first slow: p50", "p95", "max"):
        table.add_column(name, justify="right")
    for run in runs:
        told, trials = len(run.decidable_s), len(run.decidable_s) + run.missed
        figures = [_three(run.decidable_s), _three(run.first_slow_s)]
        table.add_row(
            f"{run.rate:,.0f}",
            f"{run.behind_ms:.0f} ms",
            f"{run.worker_cpu:.2f}",
            f"{told} of {trials}",
            *(text for three in figures for text in three),
        )
    return table


def _three(seconds: NDArray[np.float64]) -> tuple[str, str, str]:
    """Return p50 and p95, both nearest-rank, and the maximum."""
    if not len(seconds):
        return ("-", "-", "-")
    ranked = np.sort(seconds)
    at = [int(np.ceil(q * len(ranked))) - 1 for q in (0.5, 0.95, 1.0)]
    p50, p95, most = (f"{ranked[i]:.2f}" for i in at)
    return p50, p95, most


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", help="a Kafka to use; by default one is started")
    parser.add_argument(
        "--rate", type=float, action="append", help="records/s; repeat it (default: 50, 20 and 5 k)"
    )
    parser.add_argument("--trials", type=int, default=16, help="services, each fails once")
    parser.add_argument("--cohorts", type=int, default=24, help="cohorts of each service")
    parser.add_argument("--every", type=float, default=3.0, help="seconds from fault to fault")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
