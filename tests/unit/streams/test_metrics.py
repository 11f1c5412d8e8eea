"""`/metrics`: what a worker's status comes to, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pages import DOCS, rows
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from scraped import Samples, samples_of

from tailbudget.schemas.metrics import METRICS, PROCESS_METRICS
from tailbudget.streams.flush_times import BOUNDS_S, FlushTimes
from tailbudget.streams.metrics import WorkerCollector

NOW_NS = 1_772_445_600_000_000_000


def verdict(**changes: Any) -> dict[str, Any]:
    """Return a newest verdict as the status has it."""
    return {
        "service": "chat",
        "window_s": 60,
        "end_ns": NOW_NS - 2_000_000_000,
        "verdict": "breach",
        "requests": 2_000,
        "failed": 3,
        "p50_ms": 120.0,
        "p95_ms": 480.0,
        "p99_ms": 910.0,
        "slo_p50_ms": None,
        "slo_p95_ms": None,
        "slo_p99_ms": 800.0,
        "tail_driver": "retrieve",
    } | changes


def status(**changes: Any) -> dict[str, Any]:
    """Return the status of a worker that owns two sources and a service."""
    flushed = FlushTimes()
    flushed.add(0.02, at_s=1_772_445_590.0)
    flushed.add(40.0, at_s=1_772_445_599.0)
    source = {"watermark_ns": NOW_NS - 1_500_000_000, "lag": 7, "segment_age_s": 0.25}
    new = {"watermark_ns": 0, "lag": None, "segment_age_s": 0.0}
    return {
        "healthy": True,
        "assigned": ["t:req:0", "t:req:1", "t.panes:0"],
        "panes_topic": "t.panes",
        "alerts_topic": "t.alerts",
        "ingest": {
            "t:req:0:1": source | {"records_pending": 12},
            "t:req:1:1": new | {"records_pending": 0},
        },
        "records": {"accepted": 100, "late": 2, "rejected.no_id": 1},
        "dead_letters": {"rejected.no_id": 1},
        "undecoded": 4,
        "audit": {
            "services": ["chat"],
            "lag": {"0": 3},
            "settled_ns": {"chat": NOW_NS - 20_000_000_000},
            "alerts": {"chat": {"p99": "firing", "slo:latency": "pending"}},
            "due": 1,
            "audits_unwritten": 2,
            "pending_bytes": 2048,
            "pending_limit_bytes": 4096,
            "panes_written": 9,
            "foreign": 1,
            "segments_dropped": 2,
            "segments_ignored": 3,
            "reports_drawn": 4,
            "reports_failed": 5,
        },
        "verdicts": [verdict()],
        "events_rejected": {"t.deploys": 4, "t.signals": 0},
        "flushes": {"ingest": flushed.status(), "audit": FlushTimes().status()},
        "chat": {"waiting": 2, "delivered": 6, "undelivered": 7, "foreign": 0},
    } | changes


def scraped(given: Mapping[str, Any]) -> Samples:
    """Return the samples of a scrape by name, and by the values of their labels."""
    registry = CollectorRegistry()
    registry.register(WorkerCollector(lambda: given, lambda: NOW_NS))
    return samples_of(generate_latest(registry).decode())


def test_everything_of_the_table_is_scraped() -> None:
    """Each metric has its name, type, labels and help, and nothing else is there."""
    registry = CollectorRegistry()
    registry.register(WorkerCollector(status, lambda: NOW_NS))
    said = {
        sample.name: (family.type, family.documentation, set(sample.labels))
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_sum", "_created"))
    }
    for metric in METRICS:
        name = f"{metric.name}_count" if metric.kind == "histogram" else metric.name
        assert said.pop(name) == (metric.kind, metric.help, set(metric.labels))
    assert not said


def test_sources_are_told_by_topic_and_partition() -> None:
    """A topic's life is no label; a source that brought nothing has no delay and no lag."""
    found = scraped(status())
    assert found["tailbudget_consumer_lag_messages"] == {("t:req", "0"): 7, ("t.panes", "0"): 3}
    assert found["tailbudget_watermark_delay_seconds"] == {("t:req", "0"): 1.5}
    assert found["tailbudget_segment_age_seconds"] == {("t:req", "0"): 0.25, ("t:req", "1"): 0.0}
    assert found["tailbudget_assigned_partitions"] == {("t:req",): 2, ("t.panes",): 1}


def test_what_is_not_ours_is_told_by_topic() -> None:
    """Rejected deploy events and signals are counted beside messages of no worker."""
    foreign = scraped(status())["tailbudget_foreign_messages_total"]
    assert foreign == {("t.panes",): 1, ("t.alerts",): 0, ("t.deploys",): 4, ("t.signals",): 0}


def test_times_are_in_seconds() -> None:
    """Latencies, promises, delays and stamps are in the base unit."""
    found = scraped(status())
    assert found["tailbudget_service_latency_seconds"]["chat", "60", "p99"] == 0.91
    assert found["tailbudget_service_slo_latency_seconds"] == {("chat", "p99"): 0.8}
    assert found["tailbudget_service_settled_delay_seconds"] == {("chat",): 20}
    end_s = found["tailbudget_service_audit_end_timestamp_seconds"]["chat", "60"]
    assert end_s == pytest.approx(NOW_NS / 1e9 - 2, abs=1e-3, rel=0)


@pytest.mark.parametrize(
    ("said", "breaching"),
    [("breach", 1), ("at_risk", 0), ("ok", 0), ("insufficient", None), ("no_data", None)],
)
def test_what_is_not_judged_does_not_breach(said: str, breaching: float | None) -> None:
    """Only verdicts that judge have a sample."""
    found = scraped(status(verdicts=[verdict(verdict=said)]))
    wanted = {} if breaching is None else {("chat", "60"): breaching}
    assert found.get("tailbudget_service_breaching", {}) == wanted


def test_too_few_requests_have_no_percentile() -> None:
    """A percentile that so few requests cannot tell is left out, and so is a failed one."""
    few = scraped(status(verdicts=[verdict(requests=250)]))
    assert set(few["tailbudget_service_latency_seconds"]) == {
        ("chat", "60", "p50"),
        ("chat", "60", "p95"),
    }
    failed = scraped(status(verdicts=[verdict(p99_ms=None)]))
    assert ("chat", "60", "p99") not in failed["tailbudget_service_latency_seconds"]
    assert "tailbudget_service_latency_seconds" not in scraped(status(verdicts=[]))


def test_flushes_are_a_histogram() -> None:
    """Buckets cumulate, the last is infinite; what never flushed has no time of its last flush."""
    found = scraped(status())
    buckets = found["tailbudget_flush_duration_seconds_bucket"]
    assert buckets["ingest", f"{BOUNDS_S[0]:g}"] == 0
    assert buckets["ingest", "0.025"] == 1
    assert buckets["ingest", "30.0"] == 1
    assert buckets["ingest", "+Inf"] == 2
    assert found["tailbudget_flush_duration_seconds_sum"]["ingest",] == pytest.approx(40.02)
    assert found["tailbudget_flush_duration_seconds_count"]["audit",] == 0
    assert found["tailbudget_last_flush_timestamp_seconds"] == {("ingest",): 1_772_445_599.0}


def test_hostile_names_survive_the_format() -> None:
    """Quotes, newlines and backslashes in a service's name come back as they were."""
    name = 'a"b\\c\nd\u202e{x="1"} 5'
    found = scraped(status(verdicts=[verdict(service=name)]))
    assert found["tailbudget_service_breaching"] == {(name, "60"): 1}


def test_the_page_lists_every_metric() -> None:
    """The tables of docs/metrics.md are those of the code, in its order."""
    table = rows(DOCS / "metrics.md", "| Name | Type | Labels | Meaning |")
    assert table == [
        [f"`{m.name}`", m.kind, ", ".join(f"`{label}`" for label in m.labels), m.help]
        for m in METRICS
    ]
    process = rows(DOCS / "metrics.md", "| Name | Meaning |")
    assert process == [[f"`{name}`", meaning] for name, meaning in PROCESS_METRICS.items()]
