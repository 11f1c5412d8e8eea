"""Every real file: audited with figures that are derived from it in another way, or refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailbudget.schemas import refusals
from tailbudget.schemas.errors import Refused
from tailbudget.schemas.settings import Settings
from tailbudget.streams.audit_log import Wanted
from tailbudget.streams.log_report import Asked, make

DATA = Path(__file__).parents[2] / "data"
Totals = tuple[list[float], int]
"""Milliseconds of the requests that succeeded, and how many failed."""


def document(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def aiperf(name: str) -> Totals:
    rows = [json.loads(line) for line in (DATA / name).read_text().splitlines()]
    good = [row["metrics"]["request_latency"]["value"] for row in rows if not row.get("error")]
    return good, len(rows) - len(good)


def llmperf(name: str) -> Totals:
    rows = document(name)
    good = [1e3 * row["end_to_end_latency_s"] for row in rows if row["error_code"] is None]
    return good, len(rows) - len(good)


def jaeger(name: str) -> Totals:
    spans = [span for trace in document(name)["data"] for span in trace["spans"]]
    return [span["duration"] / 1e3 for span in spans if not span["references"]], 0


def zipkin(name: str) -> Totals:
    return [span["duration"] / 1e3 for span in document(name) if "parentId" not in span], 0


def otlp(name: str) -> Totals:
    (span,) = document(name)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    ns = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
    return [ns / 1e6], 0


def inference_perf(name: str) -> Totals:
    times = [
        [np.datetime64(span[key].rstrip("Z")) for key in ("start_time", "end_time")]
        for span in document(name)["spans"]
        if span["resource_attributes"]["service.name"] == SERVICE[name]
    ]
    return [(end - start) / np.timedelta64(1, "us") / 1e3 for start, end in times], 0


def nginx(name: str) -> Totals:
    found: dict[str, tuple[str, float]] = {}
    for line in (DATA / name).read_text().splitlines():
        match = re.search(r'" (\d{3}) \d+ "[^"]*" "[^"]*" \d+ (\d+\.\d+) ', line)
        assert match, line
        found[line] = (match[1], 1e3 * float(match[2]))
    good = [ms for status, ms in found.values() if int(status) < 400]
    return good, len(found) - len(good)


def perf_analyzer(name: str) -> Totals:
    good, failed = [], 0
    for experiment in document(name)["experiments"]:
        for request in experiment["requests"]:
            stamps = request.get("response_timestamps", request.get("responses_timestamps"))
            if not stamps:
                failed += 1
            elif isinstance(request["timestamp"], int):
                good.append((stamps[-1] - request["timestamp"]) / 1e6)
    return good, failed


AUDITED: dict[str, Callable[[str], Totals]] = {
    "aiperf_v0.1_profile_export.jsonl": aiperf,
    "aiperf_v0.5_profile_export.jsonl": aiperf,
    "llmperf_groq_70b_individual.json": llmperf,
    "llmperf_bedrock_70b_individual.json": llmperf,
    "deathstarbench_jaeger_head.json": jaeger,
    "trainticket_zipkin_case1.json": zipkin,
    "zipkin_messaging-kafka.json": zipkin,
    "otlp_trace_example.json": otlp,
    "inferenceperf_otel_customer_support.json": inference_perf,
    "nginx_ingress_access.log": nginx,
    "triton_perf_analyzer_decoupled.json": perf_analyzer,
    "triton_known_error_file.json": perf_analyzer,
}
REFUSED = {
    "azure_llm_2023_code_head.csv": (refusals.NO_LATENCY, "ContextTokens"),
    "mooncake_conversation_head.jsonl": (refusals.NO_LATENCY, "input_length"),
    "guidellm_report_v2.json": (refusals.AGGREGATES, "GuideLLM"),
    "mlperf_llama2_server_summary.txt": (refusals.AGGREGATES, "MLPerf LoadGen"),
}
NOW_NS = 1_800_000_000 * 10**9
SERVICE = {"inferenceperf_otel_customer_support.json": "coordinator-agent"}
"""Which service, where a file has several."""

NO_LOGS = {"README.md", "mapping.yaml"}


def test_no_file_is_left_out() -> None:
    """Each is audited or refused below."""
    files = {path.name for path in DATA.iterdir() if path.is_file()}
    assert files == {*AUDITED, *REFUSED, *NO_LOGS}


@pytest.mark.parametrize("name", AUDITED)
def test_the_report_has_the_figures_of_the_file(name: str) -> None:
    """Requests, failures, the median and the slowest of those that succeeded."""
    good, failed = AUDITED[name](name)
    audit = make(Settings(), Asked(DATA / name, Wanted(service=SERVICE.get(name)), NOW_NS)).audit
    provenance = audit.provenance
    assert (provenance.n_ok, provenance.n_failed) == (len(good), failed)
    rows = {row.percentile: row for row in audit.end_to_end if row.basis == "success"}
    assert rows["max"].measured_ms == pytest.approx(max(good), rel=1e-6)
    median = float(np.quantile(good, 0.5, method="inverted_cdf"))
    assert rows["p50"].measured_ms == pytest.approx(median, rel=1 / 128)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_audited_is_refused_with_its_reason(name: str) -> None:
    """A workload has no latency, a summary no request; both are named."""
    reason, said = REFUSED[name]
    with pytest.raises(Refused, match=said) as caught:
        make(Settings(), Asked(DATA / name, Wanted(), NOW_NS))
    assert caught.value.reason == reason
    assert caught.value.remedy
