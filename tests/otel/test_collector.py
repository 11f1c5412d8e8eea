"""A real SDK and a real collector: the audit is that of the traced program's own clock."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from both_ways import differences, plain
from collector import Collector, binary
from inference_requests import FAILURES, VERSIONS
from inference_service import SERVICE, TEXT, pass_on
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from running_worker import GIVEN, RunningWorker, settings_for

from tailbudget.models.sketch import RELATIVE_ERROR, nearest_rank
from tailbudget.schemas.rows import DeployRow
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.report.json_report import as_json
from tailbudget.streams.audit_log import Wanted
from tailbudget.streams.history import Span
from tailbudget.streams.log_report import Asked, make
from tailbudget.streams.service_report import Past, service_report

pytestmark = [pytest.mark.otel, pytest.mark.timeout(900)]  # the first test may build the collector

PROGRAM = Path(__file__).with_name("inference_service.py")
STAGES = ("queue", "preprocess", "tokenize", "retrieve", "model_forward", "decode")
QUANTILES = {"p50": Fraction(50, 100), "p95": Fraction(95, 100), "p99": Fraction(99, 100)}
WAIT_S = 5.0
"""Longer than spans are on their way: the SDK sends them every half second."""
ROUNDED = 1e-5
"""The JSON has six digits."""

Records = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Served:
    """What the program measured, and the report of what came through the collector.

    Attributes:
        worker: that read the topic.
        messages: of the topic.
        log: what the program wrote, and the report is to equal where its clock is virtual.
        least: its records, nothing of them longer than what the SDK measured.
        most: likewise, nothing of them shorter.
        report: from ClickHouse.
    """

    worker: RunningWorker
    messages: Sequence[tuple[bytes, bytes]]
    log: Path
    least: Records
    most: Records
    report: dict[str, Any]


@pytest.fixture(params=["otlp_proto", "otlp_json"])
def encoding(request: pytest.FixtureRequest) -> str:
    """The encoding of the collector's exporter."""
    return str(request.param)


@pytest.fixture(params=["sdk", "virtual"])
def clock(request: pytest.FixtureRequest) -> str:
    """Who stamps the spans: the SDK, as they happen, or the program, two hours ago."""
    return str(request.param)


@pytest.fixture
def settings(
    bootstrap: str, clickhouse: ClickHouse, tmp_path: Path, encoding: str, clock: str
) -> Settings:
    """Settings of a worker that reads what the collector exports."""
    virtual = clock == "virtual"
    # Where spans of many minutes come in a second, batches that overtake each other are far apart.
    wait_s = 3_600.0 if virtual else WAIT_S
    entry = {"topic": f"spans-{uuid4().hex[:8]}", "format": encoding, "trace_wait_s": wait_s}
    return settings_for(
        bootstrap,
        clickhouse,
        tmp_path,
        # A version that begins is announced once a partition.
        kafka={"partitions": 1 if virtual else 2, "requests": [entry]},
        defaults={
            "slo": {"p95_ms": 250.0},
            "cohort_dims": ["route", "model_variant", "version"],
            "covariates": ["input_tokens", "output_tokens"],
        },
    )


@pytest.fixture
def served(
    settings: Settings, clickhouse: ClickHouse, tmp_path: Path, encoding: str, clock: str
) -> Iterator[Served]:
    """Run the program, the collector and a worker; wait for the report of all requests."""
    binary()
    bootstrap, topic = settings.kafka.bootstrap, settings.kafka.requests[0].topic
    # The embedded broker hangs up on clients that speak the newest protocol.
    more = {} if GIVEN else {"protocol_version": "2.8.0"}
    with (
        RunningWorker(settings, clickhouse) as worker,
        Collector(bootstrap, topic, encoding, **more) as collector,
    ):
        url, own = f"http://{collector.endpoint}/v1/traces", tmp_path / "own"
        subprocess.run([sys.executable, PROGRAM, clock, url, own], check=True)
        log, other = (Path(f"{own}.{name}.jsonl") for name in ("least", "most"))
        least = records_of(log)
        spans = sum(key.endswith("_ms") for record in least for key in record)
        worker.wait_for(lambda: spans_on(worker, encoding) >= spans, f"{spans} spans on the topic")
        messages = worker.read(topic)
        pass_on(url, time.time_ns() + (0 if clock == "virtual" else round((WAIT_S + 1) * 1e9)))
        worker.wait_for(lambda: counted(worker) >= len(least), "the requests")
        worker.wait_for(lambda: worker.query("SELECT count() FROM deploys")[0][0] > 0, "the deploy")
        yield Served(worker, messages, log, least, records_of(other), streamed(worker))


def records_of(log: Path) -> Records:
    """Return the records of a log."""
    return [orjson.loads(line) for line in log.read_bytes().splitlines()]


def streamed(worker: RunningWorker) -> dict[str, Any]:
    """Return the report of all that there is in ClickHouse."""
    now_ns = time.time_ns()
    past = Past(SERVICE, Span(0, now_ns + 10**9), now_ns=now_ns)
    return as_json(service_report(worker.settings, worker.store, past))


def spans_on(worker: RunningWorker, encoding: str) -> int:
    """Return how many spans the topic holds."""
    return sum(spans_in(value, encoding) for _, value in worker.read(worker.topic))


def spans_in(value: bytes, encoding: str) -> int:
    """Return how many spans a message holds."""
    if encoding == "otlp_proto":
        groups = TracesData.FromString(value).resource_spans
        return sum(len(scope.spans) for group in groups for scope in group.scope_spans)
    found = orjson.loads(value)["resourceSpans"]
    return sum(len(scope["spans"]) for group in found for scope in group["scopeSpans"])


def counted(worker: RunningWorker) -> int:
    """Return how many requests were judged."""
    return worker.ledger(SERVICE).get("accepted", 0)


def test_the_audit_is_that_of_the_programs_clock(served: Served, clock: str) -> None:
    """Counts, percentiles, stages, cohorts, failures and versions; nothing that people wrote."""
    check_counts(served)
    check_percentiles(served)
    check_cohorts(served)
    check_deploys(served)
    check_privacy(served)
    if clock == "sdk":
        # A trace whose spans came in several messages, as they do from any service that lives.
        assert max(Counter(key for key, _ in served.messages).values()) > 1
    else:
        assert list(differences(plain(own_report(served)), plain(served.report))) == []


def check_counts(served: Served) -> None:
    """Every request counts once, failures by their codes."""
    provenance, ledger = served.report["provenance"], served.worker.ledger(SERVICE)
    failed = sum(record["status"] != "200" for record in served.least)
    assert failed > 0
    assert (provenance["n"], provenance["n_failed"]) == (len(served.least), failed)
    assert ledger["accepted"] == len(served.least)
    assert ledger["failed"] == failed
    assert set(ledger) <= {"accepted", "failed", "unknown_column", "overlap", "late"}
    codes = Counter(record["status"] for record in served.least) - Counter({"200": 10**9})
    assert set(codes) == {str(code) for code in FAILURES}


def check_percentiles(served: Served) -> None:
    """Each lies between the clock's bounds, but for what the sketch may be off."""
    ok = [[r for r in side if r["status"] == "200"] for side in (served.least, served.most)]
    least, most = ([r["total_ms"] for r in side] for side in ok)
    # The bounds decide something: the clocks are nearer to each other than any finding is wide.
    assert nearest(most, QUANTILES["p50"]) < 1.1 * nearest(least, QUANTILES["p50"])
    rows = {(row["basis"], row["percentile"]): row for row in served.report["end_to_end"]}
    for name, quantile in QUANTILES.items():
        check_within(rows["success", name]["measured_ms"], least, most, quantile)
        failed = [float("inf")] * (len(served.least) - len(least))
        check_within(rows["all", name]["measured_ms"], least + failed, most + failed, quantile)
    stages = {row["stage"]: row for row in served.report["stages"]}
    assert set(stages) == {*STAGES, "unattributed"}
    for stage in STAGES:
        assert stages[stage]["n"] == len(least)
        low, high = ([record[f"{stage}_ms"] for record in side] for side in ok)
        for name, quantile in QUANTILES.items():
            check_within(stages[stage][f"{name}_ms"], low, high, quantile)


def check_within(
    measured: float | None, least: list[float], most: list[float], quantile: Fraction
) -> None:
    """Of values that each lie between two others, every rank does so, too."""
    low, high = nearest(least, quantile), nearest(most, quantile)
    if low == float("inf"):
        assert measured is None
        return
    assert measured is not None
    slack = RELATIVE_ERROR / (1 - RELATIVE_ERROR) + ROUNDED
    assert low * (1 - slack) <= measured <= high * (1 + slack)


def nearest(values: Sequence[float], quantile: Fraction) -> float:
    """Return the value at the nearest rank."""
    return sorted(values)[nearest_rank(len(values), quantile) - 1]


def check_cohorts(served: Served) -> None:
    """Each route, model and version has as many requests as the program served."""
    for dimension in ("route", "model_variant", "version"):
        expected = Counter(record[dimension] for record in served.least)
        sql = (
            f"SELECT dims['{dimension}'] AS value, sum(requests) FROM current_panes"
            f" WHERE service = '{SERVICE}' AND stage = 'total' AND cohort != '' GROUP BY value"
        )
        assert dict(served.worker.query(sql)) == expected, dimension


def check_deploys(served: Served) -> None:
    """The second version is a deploy, at the time at which a request to it began."""
    sql = "SELECT service, env, version, toUnixTimestamp64Nano(at) FROM deploys"
    found = served.worker.query(sql)
    assert {row[:3] for row in found} == {(SERVICE, "prod", VERSIONS[1])}
    begun = [
        (most["timestamp"], least["timestamp"])
        for least, most in zip(served.least, served.most, strict=True)
        if least["version"] == VERSIONS[1]
    ]
    for *_, at_ns in found:
        assert any(first <= at_ns <= last for first, last in begun)


def check_privacy(served: Served) -> None:
    """Prompts, answers and errors reached the topic, and nothing behind it."""
    assert any(TEXT.encode() in value for _, value in served.messages)
    tables = served.worker.query(
        "SELECT name FROM system.tables WHERE database = currentDatabase()"
        " AND engine LIKE '%MergeTree'"
    )
    assert len(tables) > 5
    for (table,) in tables:
        assert TEXT not in repr(served.worker.query(f"SELECT * FROM {table}")), table
    assert TEXT not in repr(served.worker.read(served.worker.settings.kafka.dead_letters_topic))
    assert TEXT not in repr(served.report)


def own_report(served: Served) -> dict[str, Any]:
    """Return the audit of the program's own log."""
    at_ns = min(r["timestamp"] for r in served.least if r["version"] == VERSIONS[1])
    asked = Asked(
        source=served.log,
        wanted=Wanted(service=SERVICE, format="native"),
        now_ns=time.time_ns(),
        deploys=(DeployRow(SERVICE, "prod", VERSIONS[1], at_ns, at_ns, "deploy"),),
    )
    return as_json(make(served.worker.settings, asked).audit)
