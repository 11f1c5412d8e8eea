"""`/metrics` of a running worker."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable

import orjson
import requests
from prometheus_client.parser import text_string_to_metric_families
from running_worker import RunningWorker
from scraped import Samples, samples_of

from tailbudget.schemas.metrics import BY_NAME, PROCESS_METRICS
from tailbudget.streams.embedded import free_port

SLO = {"chat": {"slo": {"p50_ms": 1.0}}}


def records(n: int) -> list[bytes]:
    """Return requests of now that miss the target, one that is no record, and one twice."""
    now_ns = time.time_ns()
    good = [
        {"request_id": f"r{i}", "timestamp": now_ns - 10**7 * i, "total_ms": 5.0, "decode_ms": 4.0}
        for i in range(n)
    ]
    lines = [orjson.dumps(one) for one in [*good, good[0]]]
    return [b"\n".join(lines), b"no record"]


def scrape(port: int) -> tuple[str, Samples]:
    """Return the text of a scrape, and its samples by name and values of labels."""
    answer = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10)
    assert answer.ok, answer.text
    return answer.text, samples_of(answer.text)


def test_a_worker_tells_of_itself_and_its_services(start: Callable[..., RunningWorker]) -> None:
    """What was sent is counted by reason, written, timed, and judged; promtool likes the text."""
    port = free_port()
    worker = start(
        web={"enabled": True, "port": port},
        services=SLO,
        stream={"flush_s": 0.5, "pane_s": 1, "grace_s": 1},
    )
    topic, panes = worker.topic, worker.settings.kafka.panes_topic
    worker.produce(records(300))

    def judged() -> bool:
        worker.produce(
            [
                orjson.dumps(
                    {
                        "request_id": str(time.time_ns()),
                        "timestamp": time.time_ns(),
                        "total_ms": 5.0,
                    }
                )
            ]
        )
        found = scrape(port)[1]
        return bool(
            found.get("tailbudget_service_breaching", {}).get(("chat", "60"))
            and found.get("tailbudget_panes_written_total", {}).get(())
            and found.get("tailbudget_service_settled_delay_seconds")
        )

    worker.wait_for(judged, "a verdict and a write")
    text, found = scrape(port)
    assert found["tailbudget_healthy"] == {(): 1}
    assert found["tailbudget_records_total"]["accepted",] >= 300
    assert found["tailbudget_records_total"]["duplicate",] == 1
    assert found["tailbudget_records_total"]["rejected.not_json",] == 1
    assert found["tailbudget_dead_letters_total"] == {("rejected.not_json",): 1}
    assert {(topic, "0"), (panes, "0")} <= found["tailbudget_consumer_lag_messages"].keys()
    assert 0 < found["tailbudget_watermark_delay_seconds"][topic, "0"] < 60
    assert found["tailbudget_service_latency_seconds"]["chat", "60", "p50"] == 0.005
    assert ("chat", "60", "p99") not in found["tailbudget_service_latency_seconds"]
    assert found["tailbudget_service_slo_latency_seconds"] == {("chat", "p50"): 0.001}
    for step in ("ingest", "audit"):
        assert found["tailbudget_flush_duration_seconds_count"][step,] >= 1
        assert found["tailbudget_last_flush_timestamp_seconds"][step,] > time.time() - 60
    assert found["process_resident_memory_bytes"][()] > 2**20
    families = {family.name for family in text_string_to_metric_families(text)}
    known = {name.removesuffix("_total") for name in (*BY_NAME, *PROCESS_METRICS)}
    assert families <= known
    lint(text)
    asked = {"Accept": "application/openmetrics-text; version=1.0.0"}
    openmetrics = requests.get(f"http://127.0.0.1:{port}/metrics", headers=asked, timeout=10)
    assert openmetrics.headers["Content-Type"].startswith("application/openmetrics-text")
    assert openmetrics.text.endswith("# EOF\n")


def lint(text: str) -> None:
    """Let promtool look at names, types and help, where it is installed."""
    if shutil.which("promtool"):
        done = subprocess.run(
            ["promtool", "check", "metrics"],
            input=text,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
