"""`/metrics`: the worker's health and its newest verdicts, for Prometheus.

`schemas.metrics` names all of them. Everything is read off the worker's status at the moment of
the scrape; what is not known has no sample.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from tailbudget.models.ranks import requests_needed
from tailbudget.schemas.metrics import BY_NAME, METRICS
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.verdicts import Verdict

Status = Callable[[], Mapping[str, Any]]
Sample = tuple[tuple[str, ...], float]
"""Values of the labels, and the value."""

_BREACHING: Final = {Verdict.BREACH: 1.0, Verdict.OK: 0.0, Verdict.AT_RISK: 0.0}
"""Verdicts that judge; under the others nothing is known."""


class WorkerCollector(Collector):
    """Turns the status of a worker into metrics.

    Args:
        status: returns what `/status` tells.
        clock: returns the time, nanoseconds since 1970.
    """

    def __init__(self, status: Status, clock: Callable[[], int] = time.time_ns) -> None:
        self._status = status
        self._clock = clock

    def describe(self) -> Iterable[Metric]:
        """Name the metrics without asking the worker."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that have a sample now, in the order of `schemas.metrics`."""
        status = self._status()
        samples = gauges_and_counters(status, self._clock())
        for one in METRICS:
            if one.kind == "histogram":
                yield _flushes(status["flushes"])
            elif found := samples[one.name]:
                yield _family(one.name, found)


def handler(status: Status) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return what answers `GET /metrics`.

    Args:
        status: returns what `/status` tells.
    """

    async def answer(request: web.Request) -> web.Response:
        now = status()
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(WorkerCollector(lambda: now))
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # In a thread: with hundreds of services it takes as long as many rounds of judging.
        body = await asyncio.to_thread(encode, registry)
        response = web.Response(body=body, headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    return answer


def gauges_and_counters(status: Mapping[str, Any], now_ns: int) -> dict[str, list[Sample]]:
    """Return the samples of each metric that is no histogram; a metric may have none.

    Args:
        status: what `/status` tells.
        now_ns: the time.
    """
    return {
        **_alone(status),
        **_of_sources(status, now_ns),
        **_of_counts(status),
        **_of_services(status, now_ns),
        **_of_verdicts(status["verdicts"]),
    }


def _alone(status: Mapping[str, Any]) -> dict[str, list[Sample]]:
    audit = status["audit"]
    values = {
        "tailbudget_healthy": float(status["healthy"]),
        "tailbudget_pending_bytes": audit["pending_bytes"],
        "tailbudget_pending_limit_bytes": audit["pending_limit_bytes"],
        "tailbudget_panes_written_total": audit["panes_written"],
        "tailbudget_reports_drawn_total": audit["reports_drawn"],
        "tailbudget_reports_failed_total": audit["reports_failed"],
        "tailbudget_services": len(audit["services"]),
    }
    return {name: [((), float(value))] for name, value in values.items()}


def _of_sources(status: Mapping[str, Any], now_ns: int) -> dict[str, list[Sample]]:
    sources = {place_of(key): source for key, source in status["ingest"].items()}
    panes = {(status["panes_topic"], number): n for number, n in status["audit"]["lag"].items()}
    lag = {place: source["lag"] for place, source in sources.items()} | panes
    delay_s: dict[tuple[str, ...], float | None] = {
        place: (now_ns - source["watermark_ns"]) / 1e9 if source["watermark_ns"] else None
        for place, source in sources.items()
    }
    return {
        "tailbudget_consumer_lag_messages": _known(lag),
        "tailbudget_watermark_delay_seconds": _known(delay_s),
        "tailbudget_segment_age_seconds": _known(_each(sources, "segment_age_s")),
        "tailbudget_segment_records": _known(_each(sources, "records_pending")),
    }


def _of_counts(status: Mapping[str, Any]) -> dict[str, list[Sample]]:
    audit, chat = status["audit"], status["chat"]
    assigned: dict[str, int] = {}
    for place in status["assigned"]:
        topic = place.rpartition(":")[0]
        assigned[topic] = assigned.get(topic, 0) + 1
    queues = {
        "messages_to_decode": status["undecoded"],
        "services_to_judge": audit["due"],
        "audits_to_write": audit["audits_unwritten"],
        "alerts_to_tell": chat["waiting"],
    }
    foreign = {
        status["panes_topic"]: audit["foreign"],
        status["alerts_topic"]: chat["foreign"],
        **status["events_rejected"],
    }
    segments = {"dropped": audit["segments_dropped"], "stale": audit["segments_ignored"]}
    alerts = {"delivered": chat["delivered"], "undelivered": chat["undelivered"]}
    flushed = {step: times["at_s"] for step, times in status["flushes"].items()}
    return {
        "tailbudget_assigned_partitions": _by_one(assigned),
        "tailbudget_records_total": _by_one(status["records"]),
        "tailbudget_dead_letters_total": _by_one(status["dead_letters"]),
        "tailbudget_queue_length": _by_one(queues),
        "tailbudget_last_flush_timestamp_seconds": _by_one(flushed),
        "tailbudget_segments_total": _by_one(segments),
        "tailbudget_foreign_messages_total": _by_one(foreign),
        "tailbudget_alerts_total": _by_one(alerts),
    }


def _of_services(status: Mapping[str, Any], now_ns: int) -> dict[str, list[Sample]]:
    settled = status["audit"]["settled_ns"].items()
    delay_s = {service: (now_ns - settled_ns) / 1e9 for service, settled_ns in settled}
    standing: list[Sample] = [
        ((service, alert, state), 1.0)
        for service, alerts in status["audit"]["alerts"].items()
        for alert, state in alerts.items()
    ]
    return {
        "tailbudget_service_settled_delay_seconds": _by_one(delay_s),
        "tailbudget_service_alert": standing,
    }


def _of_verdicts(verdicts: Iterable[Mapping[str, Any]]) -> dict[str, list[Sample]]:
    latency: dict[tuple[str, ...], float | None] = {}
    promised: dict[tuple[str, ...], float | None] = {}
    said: dict[str, dict[tuple[str, ...], float | None]] = {
        "breaching": {},
        "requests": {},
        "failed_requests": {},
        "audit_end_timestamp_seconds": {},
    }
    for one in verdicts:
        service, window = one["service"], f"{one['window_s']:g}"
        for name, q in QUANTILES.items():
            enough = one["requests"] >= requests_needed(q)
            measured_ms = one[f"{name}_ms"] if enough else None
            latency[service, window, name] = _seconds(measured_ms)
            promised[service, name] = _seconds(one[f"slo_{name}_ms"])
        place = (service, window)
        said["breaching"][place] = _BREACHING.get(Verdict(one["verdict"]))
        said["requests"][place] = one["requests"]
        said["failed_requests"][place] = one["failed"]
        said["audit_end_timestamp_seconds"][place] = one["end_ns"] / 1e9
    return {
        "tailbudget_service_latency_seconds": _known(latency),
        "tailbudget_service_slo_latency_seconds": _known(promised),
        **{f"tailbudget_service_{name}": _known(values) for name, values in said.items()},
    }


def place_of(source: str) -> tuple[str, str]:
    """Return topic and partition of a source, without the incarnation of its topic."""
    topic, partition, _ = source.rsplit(":", 2)
    return topic, partition


def _each(sources: Mapping[tuple[str, str], Mapping[str, Any]], key: str) -> dict[Any, Any]:
    return {place: source[key] for place, source in sources.items()}


def _by_one(values: Mapping[str, float | None]) -> list[Sample]:
    return _known({(label,): value for label, value in values.items()})


def _known(values: Mapping[tuple[str, ...], float | None]) -> list[Sample]:
    return [(labels, float(value)) for labels, value in values.items() if value is not None]


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3


def _family(name: str, samples: Iterable[Sample]) -> Metric:
    metric = BY_NAME[name]
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(name, metric.help, labels=metric.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def _flushes(flushes: Mapping[str, Mapping[str, Any]]) -> Metric:
    metric = BY_NAME["tailbudget_flush_duration_seconds"]
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for step, times in flushes.items():
        buckets = [("+Inf" if le is None else str(le), n) for le, n in times["buckets"]]
        family.add_metric([step], buckets, sum_value=times["sum_s"])
    return family
