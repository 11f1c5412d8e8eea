"""What `tailbudget.streams.instrument` costs a request of five stages, beside doing it by hand.

    python tests/bench/instrument.py

Requests that do nothing, in one thread, so that all of their time is overhead. First as fast as
they go, best of some runs; then at a steady rate with the producer at work beside them, on the
embedded broker.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from confluent_kafka import Producer
from load import create
from process import last_core, pin
from rich.console import Console
from rich.table import Table

from tailbudget.streams.embedded import EmbeddedBroker
from tailbudget.streams.instrument import (
    Finished,
    RecordMiddleware,
    RecordProducer,
    request,
    stage_timer,
)
from tailbudget.streams.kafka import client_config

STAGES: Final = ("tokenize", "queue", "retrieve", "prefill", "decode")
TOPIC: Final = "bench"

Run = Callable[[int], float | None]
"""Makes so many requests; returns the CPU seconds, None where all of its time counts."""


class Nowhere:
    """A sink that keeps nothing."""

    def send(self, record: Finished) -> None:
        """Forget a record."""


def by_hand() -> dict[str, Any]:
    """Time five stages with two clock readings each, into a record."""
    row: dict[str, Any] = {"request_id": "r", "timestamp": time.time_ns(), "route": "search"}
    begin = time.perf_counter_ns()
    for stage in STAGES:
        since = time.perf_counter_ns()
        row[stage + "_ms"] = (time.perf_counter_ns() - since) / 1e6
    row["total_ms"] = (time.perf_counter_ns() - begin) / 1e6
    return row


def ours(sink: Any) -> None:
    """Time five stages and hand the record to a sink."""
    with request(sink, route="search", batch_size=3):
        for stage in STAGES:
            with stage_timer(stage):
                pass


def main() -> int:
    """Measure each way and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=20_000, help="of a run, at full speed")
    parser.add_argument("--repeat", type=int, default=7, help="the best of so many runs counts")
    parser.add_argument("--rate", type=int, default=2_000, help="requests/s of the steady run")
    parser.add_argument("--seconds", type=float, default=10.0, help="of the steady run")
    options = parser.parse_args()
    log = Path(tempfile.mkdtemp(prefix="tailbudget-bench-")) / "broker.log"
    with EmbeddedBroker(log_path=log) as broker:
        config = client_config(broker.bootstrap)
        create(broker.bootstrap, TOPIC, 1)
        pin(0, last_core())
        _print_full_speed(options)
        _print_steady(options, config)
    return 0


def _print_full_speed(options: argparse.Namespace) -> None:
    table = Table("way", "CPU us a request", "of by hand", title="at full speed, five stages")
    reference = None
    for name, work in _ways():
        each_us = _best_us(work, options.requests, options.repeat)
        reference = reference or each_us
        table.add_row(name, f"{each_us:.2f}", f"{each_us / reference:.1f}x")
    Console(width=100).print(table)


def _ways() -> list[tuple[str, Run]]:
    """Return what is measured; each takes the number of requests."""
    sink = Nowhere()
    return [
        ("by hand: clock readings into a dict, not sent", _times(by_hand)),
        ("by hand, and JSON in the request", _times(lambda: orjson.dumps(by_hand()))),
        ("ours: request() and stage_timer", _times(lambda: ours(sink))),
        ("ours: middleware and stage_timer, less the bare ASGI call", _middleware(sink)),
    ]


def _times(work: Callable[[], object]) -> Run:
    def run(requests: int) -> None:
        for _ in range(requests):
            work()

    return run


def _middleware(sink: Nowhere) -> Run:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(_message: Any) -> None:
        pass

    async def bare(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def staged(scope: Any, receive: Any, send: Any) -> None:
        for stage in STAGES:
            with stage_timer(stage):
                pass
        await bare(scope, receive, send)

    async def calls(app: Any, requests: int) -> float:
        begin = time.thread_time()
        for _ in range(requests):
            await app({"type": "http", "path": "/x"}, receive, send)
        return time.thread_time() - begin

    def run(requests: int) -> float:
        return asyncio.run(calls(RecordMiddleware(staged, sink), requests)) - asyncio.run(
            calls(bare, requests)
        )

    return run


def _best_us(work: Run, requests: int, repeat: int) -> float:
    """Return the CPU microseconds a request of the best run."""
    spent = []
    for _ in range(repeat):
        gc.collect()
        begin = time.thread_time()
        told = work(requests)
        spent.append(time.thread_time() - begin if told is None else told)
    return min(spent) / requests * 1e6


def _print_steady(options: argparse.Namespace, config: dict[str, str]) -> None:
    table = Table(
        "way", "p50 us", "p99 us", "p99.9 us", "max us", "CPU us",
        title=f"at {options.rate:,} requests/s, the whole process on one core",
    )  # fmt: skip
    naive = Producer({**config, "linger.ms": 50})

    def send() -> None:
        naive.produce(TOPIC, orjson.dumps(by_hand()))
        naive.poll(0)

    table.add_row("by hand, not sent", *_steady(by_hand, options))
    table.add_row("by hand, JSON and produce() in the request", *_steady(send, options))
    naive.flush(10)
    producer = RecordProducer(config, topic=TOPIC, service="bench")
    table.add_row("ours, to Kafka", *_steady(lambda: ours(producer), options))
    producer.close()
    Console(width=100).print(table)
    print(producer.stats())


def _steady(work: Callable[[], object], options: argparse.Namespace) -> Sequence[str]:
    """Return percentiles of the time of a request, and CPU a request of all our threads."""
    took_ns = []
    cpu_s = time.process_time()
    start = time.perf_counter()
    for number in range(int(options.rate * options.seconds)):
        wait_s = start + number / options.rate - time.perf_counter()
        if wait_s > 0:
            time.sleep(wait_s)
        begin = time.perf_counter_ns()
        work()
        took_ns.append(time.perf_counter_ns() - begin)
    cpu_s = time.process_time() - cpu_s
    took_ns.sort()
    ranks = [took_ns[int(len(took_ns) * q)] for q in (0.5, 0.99, 0.999)]
    figures = [*ranks, took_ns[-1]]
    return [*(f"{ns / 1e3:,.1f}" for ns in figures), f"{cpu_s / len(took_ns) * 1e6:.1f}"]


if __name__ == "__main__":
    sys.exit(main())
