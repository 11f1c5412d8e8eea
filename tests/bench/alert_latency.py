"""From the record that makes a breach certain to the message in chat, under load.

    python tests/bench/alert_latency.py --rate 50000 --rate 20000

A producer process sends healthy records of some services; one after another turns 20 times slower
for a moment. A worker process judges, and a receiver in this process stands for the chat channel.

Two latencies are taken of each trial:

- decidable: from the time of the first record with which the alert rule holds, computed from the
  producer's log by the rule of `models.breach` and `streams.service_audit`: among the service's
  records up to it, those over the p99 target are more than 1 % and more than chance explains in
  the judged minute, and more than 1 % in the last 20 s. No message can come before that record.
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
from tailbudget.streams.service_audit import RESET_S, WINDOWS_S

Ints = NDArray[np.int64]

SLO: Final = {"p95_ms": 300.0, "p99_ms": 500.0}
_SHARE: Final = 0.01
_PANE_NS: Final = 10_000_000_000
_CALM_S: Final = 15.0
_FAULT_S: Final = 1.5
_TAIL_S: Final = 8.0
_MESSAGES_A_MINUTE: Final = 600  # more than there are: how long a channel is spared is no latency


@dataclass(slots=True)
class Receiver:
    """A chat channel that notes when messages of breaches come.

    Attributes:
        firing: (service, time of receipt) of each.
    """

    firing: list[tuple[str, int]] = field(default_factory=list)

    def start(self) -> ThreadingHTTPServer:
        """Serve in a thread of its own; returns the server, to be shut down."""
        notes = self.firing

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                now_ns = time.time_ns()
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                title = str(json.loads(text).get("title", ""))
                found = re.search(r"\[FIRING[^]]*\] (service-\d+)", title)
                if found:
                    notes.append((found[1], now_ns))
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
        missed: trials without a message.
    """

    rate: float
    behind_ms: float
    worker_cpu: float
    lag: int
    decidable_s: NDArray[np.float64]
    first_slow_s: NDArray[np.float64]
    missed: int


def decidable_ns(ts_ns: Ints, slow: NDArray[np.bool_], begin: int) -> int | None:
    """Return the time of the first record with which the p99 rule holds; None without one.

    Args:
        ts_ns: [n] times of a service's records, ascending.
        slow: [n] which of them are over the target.
        begin: index of the trial's first slow record.
    """
    over = np.concatenate(([0], np.cumsum(slow)))

    def counts(k: int, window_ns: int) -> tuple[int, int]:
        """Return (records, those over) of a window of whole panes, the open one included."""
        start_ns = ts_ns[k] - ts_ns[k] % _PANE_NS + _PANE_NS - window_ns
        low = int(np.searchsorted(ts_ns, start_ns))
        return k + 1 - low, int(over[k + 1] - over[low])

    for k in range(begin, len(slow)):
        recent, bad = counts(k, RESET_S * 1_000_000_000)
        if bad <= recent * _SHARE:
            continue
        n, bad = counts(k, WINDOWS_S[0] * 1_000_000_000)
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
    url = f"json://127.0.0.1:{server.server_address[1]}/"
    chat = [{"name": "bench", "url": url, "per_minute": _MESSAGES_A_MINUTE}]
    worker = WorkerProcess(bootstrap, home, defaults={"slo": SLO}, chat=chat)
    seconds = _CALM_S + options.every * options.trials + _TAIL_S
    log = home / "slices.json"
    values = {
        "--bootstrap": bootstrap,
        "--topic": worker.topic,
        "--log": str(log),
        "--rate": str(rate),
        "--services": str(options.services),
        "--trials": str(options.trials),
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
    return _measure(json.loads(log.read_bytes()), receiver.firing, used, lag, options)


def _pending(worker: WorkerProcess) -> int:
    return sum(int(source["records_pending"]) for source in worker.status()["ingest"].values())


def _measure(
    told: dict[str, Any],
    firing: list[tuple[str, int]],
    used: float,
    lag: int,
    options: argparse.Namespace,
) -> Run:
    at_ns, step_ns, count, trials = np.array(told["slices"], np.int64).T
    ts_ns = (at_ns[:, None] + np.arange(int(count[0])) * step_ns[:, None]).ravel()
    service = np.arange(len(ts_ns)) % options.services
    fault = np.repeat(trials, count)
    decidable, first = [], []
    for trial in range(options.trials):
        number = trial % options.services
        mine = service == number
        times, faults = ts_ns[mine], fault[mine]
        begin = int(np.argmax(faults == trial))
        slow = (faults >= 0) & (faults % options.services == number)
        certain_ns = decidable_ns(times, slow, begin)
        until_ns = times[begin] + int(options.every * 1e9 * options.services)
        name = f"service-{number:02d}"
        came = [at for who, at in firing if who == name and times[begin] <= at < until_ns]
        if came and certain_ns is not None:
            decidable.append((came[0] - certain_ns) / 1e9)
            first.append((came[0] - int(times[begin])) / 1e9)
    missed = options.trials - len(decidable)
    two = np.array(decidable), np.array(first)
    return Run(told["rate"], told["late_ms"], used, lag, *two, missed)


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
    parser.add_argument("--services", type=int, default=4, help="services (default: 4)")
    parser.add_argument("--trials", type=int, default=12, help="faults (default: 12)")
    parser.add_argument("--cohorts", type=int, default=24, help="cohorts of each service")
    parser.add_argument("--every", type=float, default=8.0, help="seconds from fault to fault")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
