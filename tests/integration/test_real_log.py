"""A real benchmark's log through the broker and the worker equals what the file itself says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from running_worker import RunningWorker

from tailbudget.streams import replay
from tailbudget.streams.kafka import kafka_config

LOG = Path(__file__).parents[1] / "data" / "aiperf_v0.1_profile_export.jsonl"


def of_the_file(metric: str) -> list[float]:
    """Return a metric of all requests that were answered, straight from the file."""
    rows = [orjson.loads(line) for line in LOG.read_bytes().splitlines()]
    return sorted(row["metrics"][metric]["value"] for row in rows if not row.get("error"))


def nearest_rank(values: list[float], per_cent: int) -> float:
    """Return the value of rank ceil(p n), counted in whole numbers."""
    return values[-(-per_cent * len(values) // 100) - 1]


def test_a_replayed_benchmark_gives_its_own_percentiles(start: Any) -> None:
    """100 requests, 11 of them cancelled: SQL gives the file's counts and percentiles."""
    worker: RunningWorker = start(
        kafka={
            "requests": [
                {"topic": f"bench-{uuid4().hex[:8]}", "service": "llm", "format": "aiperf"}
            ]
        }
        | {"partitions": 2},
    )
    entry = worker.settings.kafka.requests[0]
    done = replay.run(kafka_config(worker.settings.kafka), LOG, lambda _: entry)
    assert done.lines == 100
    worker.wait_for(lambda: worker.requests("llm") == 100, "100 requests")
    total = of_the_file("request_latency")
    counts = worker.query(
        "SELECT sum(requests), sum(failed), sum(n), min(min_ms), max(max_ms), sum(sum_ns)"
        " FROM current_panes WHERE stage = 'total' AND service = 'llm'"
    )[0]
    assert counts[:3] == (100, 11, 89)
    assert counts[3:5] == (total[0], total[-1])
    assert math.isclose(counts[5] / 1e6, math.fsum(total), rel_tol=1e-9)
    for stage, metric in (("total", "request_latency"), ("prefill", "ttft")):
        values = of_the_file(metric)
        found = worker.query(
            "SELECT p50_ms, p95_ms, p99_ms FROM latency(window = 864000)"
            " WHERE service = 'llm' AND stage = {stage:String}",
            stage=stage,
        )
        assert len(found) == 1
        for measured, per_cent in zip(found[0], (50, 95, 99), strict=True):
            assert measured == pytest.approx(nearest_rank(values, per_cent), rel=1 / 128), stage
