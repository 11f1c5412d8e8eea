"""Logs of public projects, against figures that are computed from the files in another way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audited_logs import BOUND, DATA, Answer, Command

UNIT_MS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3}
AIPERF = [f"aiperf_v{version}_profile_export.jsonl" for version in ("0.1", "0.5")]
LLMPERF = {
    "llmperf_groq_70b_individual.json": 0,
    "llmperf_bedrock_70b_individual.json": 49,
}


def near(ms: float) -> Any:
    return pytest.approx(ms, rel=BOUND)


def nearest_rank(values: np.ndarray, quantile: float) -> float:
    return float(np.quantile(values, quantile, method="inverted_cdf"))


def assert_percentiles(found: Answer, total_ms: np.ndarray) -> None:
    """The success-only rows are the nearest ranks of these latencies."""
    for name, quantile in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        row = found.at(name, "success")
        assert row["measured_ms"] == near(nearest_rank(total_ms, quantile)), name
        assert row["n"] == len(total_ms)
    assert found.at("max", "success")["measured_ms"] == pytest.approx(total_ms.max(), rel=1e-5)


def metric(row: dict[str, Any], *names: str) -> float:
    """Return a metric of AIPerf in milliseconds, or as it is where it is no time."""
    held = next((row["metrics"][name] for name in names if name in row["metrics"]), None)
    return float("nan") if held is None else held["value"] * UNIT_MS.get(held["unit"], 1.0)


@pytest.mark.parametrize("name", AIPERF)
def test_exports_of_aiperf(audit: Command, name: str) -> None:
    """Percentiles, failures, the first token and the input shape are those of the file."""
    rows = [json.loads(line) for line in (DATA / name).read_text().splitlines()]
    ok = [row for row in rows if not row.get("error") and not row["metadata"].get("was_cancelled")]
    total_ms = np.array([metric(row, "request_latency") for row in ok])
    first_ms = np.array([metric(row, "ttft", "time_to_first_token") for row in ok])
    found = audit(DATA / name)
    assert_percentiles(found, total_ms)
    provenance = found.report["provenance"]
    assert (provenance["n"], provenance["n_failed"]) == (len(rows), len(rows) - len(ok))
    assert found.stage("prefill")["p99_ms"] == near(nearest_rank(first_ms, 0.99))
    assert found.stage("decode")["p50_ms"] == near(nearest_rank(total_ms - first_ms, 0.5))
    tokens = [metric(row, "output_sequence_length", "output_token_count") for row in ok]
    most = {
        band["max"]
        for band in found.report["shape_bands"]
        if band["covariate"] == "output_tokens" and band["max"] is not None
    }
    assert max(most) <= max(tokens)
    assert found.status == 4


@pytest.mark.parametrize("name", LLMPERF)
def test_results_of_llmperf(audit: Command, name: str) -> None:
    """Seconds become milliseconds, errors with a latency are failures, and no time is invented."""
    rows = json.loads((DATA / name).read_text())
    ok = [row for row in rows if row["error_code"] is None]
    total_ms = 1e3 * np.array([row["end_to_end_latency_s"] for row in ok])
    first_ms = 1e3 * np.array([row["ttft_s"] for row in ok])
    found = audit(DATA / name)
    assert_percentiles(found, total_ms)
    provenance = found.report["provenance"]
    assert (provenance["n"], provenance["n_failed"]) == (150, LLMPERF[name])
    assert (provenance["start"], provenance["end"]) == (None, None)
    assert "times are unknown, for there is no timestamp" in provenance["assumptions"]
    assert found.stage("prefill")["p95_ms"] == near(nearest_rank(first_ms, 0.95))
    assert not found.warned("closed-loop")
    assert found.report["cold_start"]["suspected"] == []


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("azure_llm_2023_code_head.csv", "no column total_ms holds the end-to-end latency"),
        ("mlperf_llama2_server_summary.txt", "aggregated (MLPerf LoadGen); needs one row per"),
    ],
)
def test_what_is_no_log_of_requests_is_refused(audit: Command, file: str, said: str) -> None:
    """A trace of what was asked, and a summary: the reason, and what to do instead."""
    found = audit(DATA / file)
    assert (found.status, found.out) == (3, "")
    assert said in found.err
    assert found.err.count("\n") == 2
    assert "\nremedy: " in found.err


def test_real_logs_are_small() -> None:
    """The whole directory stays below what a clone should carry."""
    assert sum(path.stat().st_size for path in Path(DATA).rglob("*") if path.is_file()) < 5_000_000
