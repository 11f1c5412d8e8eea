"""Every metric of ours that Prometheus can scrape; docs/metrics.md says the same.

Names and units follow Prometheus: seconds, bytes, `_total` for what only grows. A value that is
not known has no sample; it is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Attributes:
        name: as it is scraped; counters end in `_total`.
        kind: its type.
        help: what it tells.
        labels: names of its labels.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


_SOURCE: Final = ("topic", "partition")
_WINDOW: Final = ("service", "window_seconds")

METRICS: Final = (
    Metric("tailbudget_healthy", "gauge", "1 once partitions are assigned, else 0"),
    Metric("tailbudget_assigned_partitions", "gauge", "partitions of this worker", ("topic",)),
    # What is read.
    Metric(
        "tailbudget_consumer_lag_messages",
        "gauge",
        "messages of a request or panes topic that are not read yet",
        _SOURCE,
    ),
    Metric(
        "tailbudget_watermark_delay_seconds",
        "gauge",
        "how far the newest event time of a source is behind the clock",
        _SOURCE,
    ),
    Metric(
        "tailbudget_segment_age_seconds",
        "gauge",
        "age of the oldest message of a source that is read and not committed",
        _SOURCE,
    ),
    Metric(
        "tailbudget_segment_records",
        "gauge",
        "accepted records of a source that are not sent yet",
        _SOURCE,
    ),
    Metric(
        "tailbudget_records_total",
        "counter",
        "what became of committed records, by the reasons of the ledger",
        ("reason",),
    ),
    Metric(
        "tailbudget_dead_letters_total",
        "counter",
        "what was sent to the dead-letter topic",
        ("reason",),
    ),
    # What is kept and written.
    Metric(
        "tailbudget_queue_length",
        "gauge",
        "what waits: messages to decode, services to judge, audits to write, alerts to tell",
        ("queue",),
    ),
    Metric(
        "tailbudget_pending_bytes",
        "gauge",
        "summaries and audits that are not durable in ClickHouse",
    ),
    Metric(
        "tailbudget_pending_limit_bytes",
        "gauge",
        "what may be pending before panes are read no further",
    ),
    Metric(
        "tailbudget_flush_duration_seconds",
        "histogram",
        "time of a flush: ingest sends and commits segments, audit writes to ClickHouse",
        ("step",),
    ),
    Metric(
        "tailbudget_last_flush_timestamp_seconds",
        "gauge",
        "when the last flush that had anything to do ended",
        ("step",),
    ),
    Metric("tailbudget_panes_written_total", "counter", "panes written to ClickHouse"),
    Metric("tailbudget_reports_drawn_total", "counter", "full reports written to ClickHouse"),
    Metric("tailbudget_reports_failed_total", "counter", "full reports that could not be drawn"),
    Metric(
        "tailbudget_segments_total",
        "counter",
        "segments that did not count: dropped for they were never committed, or stale",
        ("outcome",),
    ),
    Metric(
        "tailbudget_foreign_messages_total",
        "counter",
        "messages on our own topics that are not ours, and events that are none",
        ("topic",),
    ),
    # Who is told.
    Metric(
        "tailbudget_alerts_total",
        "counter",
        "alerts that a chat channel took, or that it did not",
        ("outcome",),
    ),
    # What is said of the services that this worker owns.
    Metric("tailbudget_services", "gauge", "services that this worker judges"),
    Metric(
        "tailbudget_service_settled_delay_seconds",
        "gauge",
        "how far the event time up to which all is in ClickHouse is behind the clock",
        ("service",),
    ),
    Metric(
        "tailbudget_service_latency_seconds",
        "gauge",
        "percentile of the newest audit, failures being slower than all",
        (*_WINDOW, "percentile"),
    ),
    Metric(
        "tailbudget_service_slo_latency_seconds",
        "gauge",
        "what the service promises of a percentile",
        ("service", "percentile"),
    ),
    Metric(
        "tailbudget_service_breaching",
        "gauge",
        "1 where the newest audit says breach, 0 for ok and at_risk",
        _WINDOW,
    ),
    Metric(
        "tailbudget_service_alert",
        "gauge",
        "1 for each alert that is not resolved, with its state",
        ("service", "alert", "state"),
    ),
    Metric(
        "tailbudget_service_requests",
        "gauge",
        "requests in the newest audit, failures too",
        _WINDOW,
    ),
    Metric("tailbudget_service_failed_requests", "gauge", "failed ones of those", _WINDOW),
    Metric(
        "tailbudget_service_audit_end_timestamp_seconds",
        "gauge",
        "event time at which the newest audit ends",
        _WINDOW,
    ),
)

BY_NAME: Final = MappingProxyType({metric.name: metric for metric in METRICS})

PROCESS_METRICS: Final = MappingProxyType(
    {
        "process_resident_memory_bytes": "memory that the worker takes",
        "process_virtual_memory_bytes": "address space of it",
        "process_cpu_seconds_total": "processor time, user and system",
        "process_open_fds": "open files and connections",
        "process_max_fds": "how many may be open",
        "process_start_time_seconds": "when the worker started",
    }
)
"""What prometheus_client itself tells of the process."""
