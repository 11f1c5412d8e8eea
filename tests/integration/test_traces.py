"""Traces from a topic: each request counts once, whoever held its spans."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from otlp import S, as_json, as_proto
from running_worker import RunningWorker, settings_for

from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse


def settings(bootstrap: str, clickhouse: ClickHouse, tmp_path: Path, name: str) -> Settings:
    """Return settings of which the topic carries traces."""
    topic = f"s{uuid4().hex[:8]}"
    entry = {"topic": topic, "service": "chat", "format": name}
    kafka = {"requests": [entry]}
    return settings_for(bootstrap, clickhouse, tmp_path, kafka=kafka, stream={"flush_s": 0.2})


def root(trace: int, start: float, version: str = "v1") -> S:
    """Return the span of a request of 100 ms."""
    return S(trace, 1, 0, "r", start, start + 100, 2, resource={"service.version": version})


def wait_for_counts(worker: RunningWorker, *, committed: int, requests: int) -> None:
    """Wait until so many messages are committed and so many requests counted."""
    worker.wait_for(lambda: worker.committed(worker.topic, 0) == committed, "the commit")
    worker.wait_for(lambda: worker.requests("chat") == requests, "the requests")


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "encode"), [("otlp_json", as_json), ("otlp_proto", as_proto)])
def test_requests_count_once_though_the_worker_changes_in_between(
    name: str, encode: object, bootstrap: str, clickhouse: ClickHouse, tmp_path: Path
) -> None:
    """Spans of a trace are read by several workers; a version that begins is a deploy."""
    assert callable(encode)
    chosen = settings(bootstrap, clickhouse, tmp_path, name)
    batches = [
        [encode([S(7, 2, 1, "a", 10, 40)]), encode([root(8, 0)])],
        [encode([root(7, 0), S(8, 2, 1, "a", 0, 90)])],
        [encode([root(9, 30_000, "v2")])],
    ]
    sent = 0
    for number, messages in enumerate(batches, 1):
        with RunningWorker(chosen, clickhouse) as worker:
            worker.produce(messages)
            sent += len(messages)
            wait_for_counts(worker, committed=sent, requests=2 if number == len(batches) else 0)
            if number == len(batches):
                ledger = worker.ledger("chat")
                assert set(ledger) == {"accepted", "unknown_column"}
                assert ledger["accepted"] == 2
                sql = "SELECT stage, max(max_ms) FROM current_panes WHERE service = 'chat'"
                found = {row[0]: row[1] for row in worker.query(f"{sql} GROUP BY stage")}
                assert (found["total"], found["a"]) == (100, 90)
    with RunningWorker(chosen, clickhouse) as worker:
        later = [(10, 60_000, "v2"), (11, 90_000, "v3"), (12, 120_000, "v3")]
        worker.produce([encode([root(*one)]) for one in later])
        worker.wait_for(lambda: worker.requests("chat") == 5, "the next requests")
        assert worker.ledger("chat")["accepted"] == 5
        sql = "SELECT DISTINCT version FROM deploys WHERE service = 'chat'"
        worker.wait_for(lambda: "v3" in {row[0] for row in worker.query(sql)}, "the deploy")
