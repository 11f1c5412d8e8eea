"""The report from the stream equals the audit of the same log, to the last digit of the JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from both_ways import differences, plain
from running_worker import RunningWorker, settings_for

from tailbudget.sinks.clickhouse import ClickHouse, ClickHouseTarget
from tailbudget.sinks.report.json_report import as_json
from tailbudget.streams import replay, traffic
from tailbudget.streams.agents.deploys import deploy_row
from tailbudget.streams.audit_log import Wanted
from tailbudget.streams.history import Span
from tailbudget.streams.kafka import kafka_config
from tailbudget.streams.log_report import Asked, make, read_deploys
from tailbudget.streams.scenario import demonstration
from tailbudget.streams.service_report import Past, service_report

DATA = Path(__file__).parents[1] / "data"
CASES = DATA / "cases"
T0_NS = 1_772_445_600 * 10**9  # 2026-03-02T10:00:00Z
SIMULATED_S = 600.0


@dataclass(frozen=True, slots=True)
class Log:
    """A log that takes both ways.

    Attributes:
        service: its service; for records that name none, the topic's.
        file: the log; None makes the simulated one.
        slo: what was promised.
        format: of the topic.
        deploys: its deploy events.
    """

    service: str
    file: Path | None
    slo: dict[str, float]
    format: str = "native"
    deploys: Path | None = None


LOGS = (
    Log("chat", None, {"p50_ms": 600.0, "p95_ms": 1500.0, "p99_ms": 2500.0}),
    Log("llm", DATA / "aiperf_v0.1_profile_export.jsonl", {"p95_ms": 3000.0}, "aiperf"),
    Log("scheduled", CASES / "01_admission_gate.jsonl", {"p99_ms": 1000.0}),
    Log("timeouts", CASES / "03_timeouts_null.jsonl", {"p99_ms": 500.0}),
    Log("rejections", CASES / "04_fast_429.jsonl", {"p99_ms": 1000.0}),
    Log(
        "scorer",
        CASES / "11_deploy_requests.jsonl",
        {"p99_ms": 200.0},
        deploys=CASES / "11_deploy_events.jsonl",
    ),
    Log("outlier", CASES / "13_one_outlier_n100.jsonl", {"p99_ms": 50.0}),
    Log("five", CASES / "14_five_samples.jsonl", {"p95_ms": 500.0}),
    Log("clock", CASES / "21_clock_step.jsonl", {"p99_ms": 50.0}),
    Log("parallel", CASES / "23_parallel.jsonl", {"p99_ms": 500.0}),
    Log("nested", CASES / "24_nested.jsonl", {"p99_ms": 500.0}),
    Log("retried", CASES / "26_retries.jsonl", {"p99_ms": 1000.0}),
    Log("redelivered", CASES / "27_redelivered.jsonl", {"p95_ms": 500.0}),
    Log("poison", CASES / "31_poison.jsonl", {"p95_ms": 500.0}),
)


def topic_of(worker: RunningWorker, service: str) -> Any:
    """Return the request topic of a service."""
    return next(entry for entry in worker.settings.kafka.requests if entry.service == service)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Ten minutes of the demonstration, and its deploy events."""
    scenario = demonstration(rate=20.0, fault_after_s=300.0, fault_for_s=60.0)
    folder = tmp_path_factory.mktemp("simulated")
    log, deploys = folder / "chat.jsonl", folder / "deploys.jsonl"
    log.write_bytes(b"\n".join(traffic.records(scenario, T0_NS, 0.0, SIMULATED_S)) + b"\n")
    deploys.write_bytes(b"\n".join(traffic.deploys(scenario, T0_NS, 0.0, SIMULATED_S)) + b"\n")
    return log, deploys


@pytest.fixture(scope="module")
def worker(
    bootstrap: str, clickhouse_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningWorker]:
    """One worker with a request topic for each log."""
    store = ClickHouse.open(ClickHouseTarget("chdb", database="agree", path=clickhouse_path))
    store.migrate()
    settings = settings_for(
        bootstrap,
        store,
        tmp_path_factory.mktemp("agree"),
        kafka={
            "partitions": 1,
            "requests": [
                {
                    "topic": f"agree-{clickhouse_path.parent.name}-{log.service}",
                    "service": log.service,
                    "format": log.format,
                }
                for log in LOGS
            ],
        },
        # Many requests of a cohort in a pane, so that only some of them are sampled.
        services={log.service: {"slo": log.slo} for log in LOGS[1:]}
        | {"chat": {"slo": LOGS[0].slo, "cohort_dims": ["route"]}},
        defaults={
            "covariates": ["input_tokens", "output_tokens", "batch_size", "documents"],
            "cohort_dims": ["route", "model_variant", "region", "customer_tier"],
        },
    )
    with RunningWorker(settings, store) as running:
        yield running
    store.close()


def offline(worker: RunningWorker, log: Log, path: Path, deploys: Path | None) -> dict[str, Any]:
    """Return the JSON of `tailbudget audit` with the worker's settings."""
    asked = Asked(
        source=path,
        wanted=Wanted(service=log.service, format=log.format),
        now_ns=time.time_ns(),
        deploys=read_deploys(deploys) if deploys else None,
    )
    return as_json(make(worker.settings, asked).audit)


def streamed(worker: RunningWorker, log: Log) -> dict[str, Any]:
    """Return the JSON of `tailbudget report` over all that there is."""
    span = Span(0, time.time_ns() + 10**9)
    past = Past(log.service, span, now_ns=time.time_ns())
    return as_json(service_report(worker.settings, worker.store, past))


def counted(report: dict[str, Any]) -> int:
    """Return how many records the ledger of a report knows of."""
    ledger = dict(report["ledger"])
    for reason in ("failed", "late", "clamped", "overlap", "unknown_column"):
        ledger.pop(reason, None)
    return sum(n for reason, n in ledger.items() if not reason.startswith("missing"))


def send(worker: RunningWorker, log: Log, path: Path) -> None:
    """Send a log as `tailbudget replay` does, or line by line where it is to be wrong."""
    entry = topic_of(worker, log.service)
    if log.service == "poison":
        rows: Sequence[bytes] = [row for row in path.read_bytes().split(b"\n") if row.strip()]
        worker.produce(rows, topic=entry.topic)
    else:
        replay.run(kafka_config(worker.settings.kafka), path, lambda _: entry)


@pytest.mark.parametrize("log", LOGS, ids=[log.service for log in LOGS])
def test_both_ways_give_one_report(
    worker: RunningWorker, log: Log, simulated: tuple[Path, Path]
) -> None:
    """Every figure, sentence and interval of the JSON is the same."""
    path, deploys = (log.file, log.deploys) if log.file else simulated
    if deploys is not None:
        rows = [deploy_row(line) for line in deploys.read_bytes().splitlines()]
        worker.store.write_deploys(rows)
    expected = offline(worker, log, path, deploys)
    send(worker, log, path)
    worker.wait_for(lambda: counted(streamed(worker, log)) >= counted(expected), "all records")
    found = streamed(worker, log)
    assert list(differences(plain(expected), plain(found))) == []
    assert expected["provenance"]["n"] > 0
