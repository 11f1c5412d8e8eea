"""Situations on which latency tools mislead, in the reports that the stream leads to.

Each is read twice: from the `report` of its range, and from the rolling report of the hour, which
the worker draws once event time has gone on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from running_worker import RunningWorker, settings_for

from tailbudget.schemas.audit_rows import FULL
from tailbudget.sinks.clickhouse import ClickHouse, ClickHouseTarget
from tailbudget.sinks.report.json_report import as_json
from tailbudget.streams.cli.judging import exit_status
from tailbudget.streams.history import Span
from tailbudget.streams.service_report import Past, service_report

pytestmark = pytest.mark.thorough

CASES = Path(__file__).parents[1] / "data" / "cases"
T0_MS = 1_772_445_600_000  # 2026-03-02T10:00:00Z
HOUR_MS = 3_600_000

SLOS = {
    "gate": {"p99_ms": 1000.0},
    "timeouts": {"p95_ms": 500.0},
    "rejected": {"p50_ms": 500.0},
    "broken": {"p95_ms": 500.0},
    "replicas": {"p99_ms": 5000.0},
    "scorer": {"p99_ms": 500.0},
    "retried": {"p50_ms": 1000.0},
    "parallel": {"p99_ms": 500.0},
    "nested": {"p99_ms": 500.0},
}
SKETCH = 0.0079


@pytest.fixture(scope="module")
def worker(
    bootstrap: str, clickhouse_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningWorker]:
    """One worker with a request topic for each case."""
    store = ClickHouse.open(ClickHouseTarget("chdb", database="reports", path=clickhouse_path))
    store.migrate()
    prefix = f"reports-{clickhouse_path.parent.name}"
    settings = settings_for(
        bootstrap,
        store,
        tmp_path_factory.mktemp("reports"),
        kafka={
            "partitions": 1,
            "requests": [{"topic": f"{prefix}-{name}", "service": name} for name in SLOS],
        },
        services={name: {"slo": slo} for name, slo in SLOS.items()},
        defaults={"cohort_dims": ["route", "replica"]},
    )
    with RunningWorker(settings, store) as running:
        yield running
    store.close()


def request(name: str, at_ms: int, total_ms: float, **more: Any) -> bytes:
    """Return a request."""
    row = {"request_id": name, "timestamp": at_ms, "total_ms": total_ms, "status": 200, **more}
    return orjson.dumps(row)


def reported(worker: RunningWorker, service: str, rows: Sequence[bytes]) -> dict[str, Any]:
    """Send requests of an hour, and return its rolling report, which is the one asked for."""
    topic = next(e.topic for e in worker.settings.kafka.requests if e.service == service)
    worker.produce([*rows, request("much later", T0_MS + HOUR_MS + 60_000, 1.0)], topic=topic)
    sql = (
        "SELECT payload FROM audits FINAL WHERE service = {service:String} AND window_s = 3600"
        " AND toUnixTimestamp64Milli(end) = {end:Int64} AND version >= {full:UInt64}"
    )
    asked = {"service": service, "end": T0_MS + HOUR_MS, "full": FULL}
    worker.wait_for(lambda: worker.query(sql, **asked), f"the rolling report of {service}")
    rolling: dict[str, Any] = orjson.loads(worker.query(sql, **asked)[0][0])
    asked_for = orjson.loads(orjson.dumps(as_json(drawn(worker, service))))
    assert rolling == asked_for
    return rolling


def drawn(worker: RunningWorker, service: str) -> Any:
    """Return the report of the hour, as the command draws it."""
    span = Span(T0_MS * 10**6, (T0_MS + HOUR_MS) * 10**6)
    return service_report(worker.settings, worker.store, Past(service, span, time.time_ns()))


def lines(name: str) -> list[bytes]:
    """Return the lines of a case."""
    return (CASES / name).read_bytes().splitlines()


def row(report: dict[str, Any], percentile: str, basis: str) -> dict[str, Any]:
    """Return a row of the snapshot."""
    return next(
        found
        for found in report["end_to_end"]
        if (found["percentile"], found["basis"]) == (percentile, basis)
    )


def test_1_waiting_for_a_permit_is_latency(worker: RunningWorker) -> None:
    """Both are reported, 500 ms as logged and 3,300 from the schedule, which is judged."""
    report = reported(worker, "gate", lines("01_admission_gate.jsonl"))
    assert row(report, "p50", "scheduled")["measured_ms"] == pytest.approx(1700, rel=SKETCH)
    assert row(report, "p99", "scheduled")["measured_ms"] == pytest.approx(3300, rel=SKETCH)
    assert row(report, "p99", "success")["measured_ms"] == pytest.approx(500, rel=SKETCH)
    assert report["verdict"] == "breach"


def test_3_timeouts_without_a_total_are_slower_than_their_limit(worker: RunningWorker) -> None:
    """The p95 is over 30 s; that of successes stands on a second line, and is not judged by."""
    report = reported(worker, "timeouts", lines("03_timeouts_null.jsonl"))
    p95 = row(report, "p95", "all")
    assert (p95["measured_ms"], p95["note"]) == (None, "over 30,000 ms (timeout)")
    assert row(report, "p95", "success")["measured_ms"] == pytest.approx(100, rel=SKETCH)
    assert report["provenance"]["n_failed"] == 10
    assert exit_status(drawn(worker, "timeouts")) != 0
    assert report["verdict"] == "breach"


def test_4_fast_rejections_are_no_fast_requests(worker: RunningWorker) -> None:
    """55 answers of 429 in 3 ms: the p50 of successes is 900 ms, and half of all failed."""
    report = reported(worker, "rejected", lines("04_fast_429.jsonl"))
    assert row(report, "p50", "success")["measured_ms"] == pytest.approx(900, rel=SKETCH)
    assert row(report, "p50", "all")["measured_ms"] is None
    assert "55 of 100 requests failed (55 %)" in report["warnings"]
    assert report["verdict"] == "breach"


def test_5_failures_alone_are_no_measurement(worker: RunningWorker) -> None:
    """Eight failed requests of 0 ms: no latency, no pass."""
    rows = [request(f"f{i}", T0_MS + i * 1000, 0.0) for i in range(8)]
    failed = [orjson.dumps({**orjson.loads(one), "status": "error"}) for one in rows]
    report = reported(worker, "broken", failed)
    assert report["provenance"]["n_ok"] == 0
    assert all(found["measured_ms"] is None for found in report["end_to_end"])
    assert report["verdict"] != "ok"
    assert exit_status(drawn(worker, "broken")) != 0


def test_10_a_cold_start_that_no_event_announced(worker: RunningWorker) -> None:
    """A replica whose first request after 20 idle minutes takes 14 s is named, with the gap."""
    rows = [request(f"a{i}", T0_MS + i * 1000, 100.0, replica="p1") for i in range(300)]
    start = T0_MS + 300_000 + 20 * 60_000
    rows += [
        request(f"b{i}", start + i * 1000, 14_000.0 if i == 0 else 100.0, replica="p2")
        for i in range(300)
    ]
    report = reported(worker, "replicas", rows)
    assert report["cold_start"]["deploys"] == []
    (found,) = report["cold_start"]["suspected"]
    said = str(found)
    assert "p2" in said
    assert report["cold_start"]["filtered_p99_ms"] is None


def test_11_one_deploy_announced_thrice(worker: RunningWorker) -> None:
    """One cold window of 57 requests; other services' and environments' events are none."""
    deploys = worker.settings.kafka.deploys_topic
    worker.produce(lines("11_deploy_events.jsonl"), topic=deploys)
    worker.wait_for(lambda: len(worker.store.recent_deploys("scorer", 0)) >= 4, "the deploys")
    report = reported(worker, "scorer", lines("11_deploy_requests.jsonl"))
    found = report["cold_start"]
    assert len(found["deploys"]) == 1
    assert found["excluded"] == 57
    assert found["unfiltered_p99_ms"] == pytest.approx(900, rel=SKETCH)
    assert found["filtered_p99_ms"] == pytest.approx(100, rel=SKETCH)


def test_26_retries_are_one_request(worker: RunningWorker) -> None:
    """Two timeouts of a minute and a success: one request that took 121,200 ms."""
    report = reported(worker, "retried", lines("26_retries.jsonl"))
    assert report["provenance"]["n"] == 1
    assert row(report, "max", "all")["measured_ms"] == 121_200
    assert report["ledger"]["retry"] == 2


def test_23_parallel_stages_are_no_more_than_the_whole(worker: RunningWorker) -> None:
    """Eight stages of 327 ms within a total of 338: their shares stay below 100 %."""
    report = reported(worker, "parallel", lines("23_parallel.jsonl"))
    shares = [found["tail_share_pct"] or 0.0 for found in report["stages"]]
    assert sum(shares) <= 100.001
    assert "parallel" in {found["role"] for found in report["stages"]}


def test_24_a_container_is_no_driver(worker: RunningWorker) -> None:
    """A stage that holds the others is told from them."""
    report = reported(worker, "nested", lines("24_nested.jsonl"))
    roles = {found["stage"]: found["role"] for found in report["stages"]}
    assert roles["request"] == "container"
    assert (report["tail_driver"] or {}).get("stage") != "request"


def test_the_worker_tells_how_many_reports_it_drew(worker: RunningWorker) -> None:
    """And that none failed."""
    status = worker.status()["audit"]
    assert status["reports_drawn"] > 0
    assert status["reports_failed"] == 0
