"""Logs that hold no request to audit, and what is said instead."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import polars as pl
import pytest
from logs import NOW_NS, Read, write

from tailbudget.schemas import refusals
from tailbudget.schemas.errors import Refused
from tailbudget.streams.audit_log import Wanted, open_frame, open_log, parse_columns
from tailbudget.streams.audit_log.aggregates import TOOLS
from tailbudget.streams.audit_log.sample import ROWS

CASES = Path(__file__).parents[2] / "data" / "cases"


def refused(path: Path) -> Refused:
    with pytest.raises(Refused) as error:
        Read(open_log(path, now_ns=NOW_NS))
    assert error.value.exit_status == 3
    assert error.value.reason in refusals.MEANING
    assert error.value.remedy
    return error.value


WRITTEN = {
    "MLPerf LoadGen": "=====\nMLPerf Results Summary\n=====\nSUT name : x\n99.00 percentile : 5\n",
    "k6": json.dumps({"metrics": {"http_req_duration": {"avg": 5, "p(95)": 9}}}, indent=1),
    "Locust": "Type,Name,Request Count,Failure Count,Median Response Time,99%\nGET,/,5,0,12,40\n",
    "Artillery": json.dumps({"aggregate": {"summaries": {"http.response_time": {"p95": 8}}}}),
    "wrk": "Running 30s test @ http://a\n  Thread Stats   Avg  Stdev\n    Latency 635.91us 0.89ms\n"
    "Requests/sec: 748868.53\n",
    "hey": "Summary:\n  Total: 1.2 secs\n  Slowest: 0.9\n  Fastest: 0.1\n  Requests/sec: 160.1\n",
    "GuideLLM": json.dumps({"metadata": {"guidellm_version": "0.8"}, "benchmarks": []}, indent=1),
    "vLLM's benchmark": json.dumps({"request_throughput": 1.5, "mean_ttft_ms": 20.0}),
    "LLMPerf (its summary)": json.dumps({"results_end_to_end_latency_s_quantiles_p99": 3.0}),
    "AIPerf (its summary)": json.dumps({"request_latency": {"avg": 1.0, "p99": 2.0}}),
    "Triton's Performance Analyzer": "Concurrency,Inferences/Second,p99 latency\n1,40.5,900\n",
    "ApacheBench": "This is ApacheBench, Version 2.3\nRequests per second: 5\n",
    "Vegeta": "Requests [total] 10\nLatencies [min, mean] 1ms, 2ms\nBytes In [total] 9\n",
    "JMeter (its aggregate report)": "Label,# Samples,Average,99% Line\nhome,10,5,9\n",
    "Prometheus": '# TYPE d histogram\nd_bucket{le="5"} 7\nd_bucket{le="+Inf"} 9\n',
    "a table of statistics": "name,n,p50,p95,p99_ms\n/a,100,5,9,12\n",
}


def test_every_tool_has_a_sample() -> None:
    """No recognised summary goes untested."""
    assert set(WRITTEN) == {*TOOLS, "a table of statistics"}


@pytest.mark.parametrize("tool", WRITTEN)
@pytest.mark.parametrize("suffix", ["txt", "json", "csv"])
def test_summaries_of_load_testers_are_named(tool: str, suffix: str, tmp_path: Path) -> None:
    """A file of aggregates is refused, whatever its name, and the refusal says whose it is."""
    path = tmp_path / f"summary.{suffix}"
    path.write_text(WRITTEN[tool])
    error = refused(path)
    assert error.reason == refusals.AGGREGATES
    assert error.message == f"{path}: aggregated ({tool}); needs one row per request"


def test_a_log_that_mentions_a_tool_is_read(tmp_path: Path) -> None:
    """A summary's words in the text of a request make no summary of a log."""
    row = {"request_id": "r", "timestamp": 1772445600, "total_ms": 5.0, "note": WRITTEN["k6"]}
    path = write(tmp_path, [row, {**row, "note": WRITTEN["MLPerf LoadGen"]}], "jsonl")
    assert len(Read(open_log(path, now_ns=NOW_NS)).only) == 2


def test_a_workload_is_no_measurement(tmp_path: Path) -> None:
    """A trace of what was asked (as Azure and Mooncake publish them) has no latency."""
    path = tmp_path / "trace.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
    )
    error = refused(path)
    assert error.reason == refusals.NO_LATENCY
    assert "ContextTokens, GeneratedTokens, TIMESTAMP" in error.message
    assert "workload" in error.remedy
    path = tmp_path / "trace.jsonl"
    path.write_text(
        '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0]}\n'
    )
    assert refused(path).reason == refusals.NO_LATENCY


@pytest.mark.parametrize(
    ("name", "mapping"),
    [
        ("latency_s", "total_ms=latency_s:s"),
        ("duration_seconds", "total_ms=duration_seconds:s"),
        ("response_time_us", "total_ms=response_time_us:us"),
        ("elapsedNs", "total_ms=elapsedNs:ns"),
        ("e2e_latency_ms", "total_ms=e2e_latency_ms"),
        ("latency", "total_ms=latency (:s, :us or :ns if not in ms)"),
    ],
)
def test_a_likely_total_is_proposed(name: str, mapping: str, tmp_path: Path) -> None:
    """The refusal shows the mapping that would make the log readable, and it does."""
    path = write(
        tmp_path, [{"request_id": f"r{i}", name: 5.0, "queue_s": 1.0} for i in range(3)], "csv"
    )
    error = refused(path)
    assert error.reason == refusals.NO_LATENCY
    assert f"--columns {mapping};" in error.remedy
    wanted = Wanted(columns=parse_columns(mapping.split(maxsplit=1)[0]))
    assert len(Read(open_log(path, wanted, now_ns=NOW_NS)).only) == 3


def test_parts_of_a_latency_are_not_proposed(tmp_path: Path) -> None:
    """The time to the first token is no total."""
    path = write(tmp_path, [{"ttft_s": 1.0, "queue_latency_s": 1.0}], "csv")
    assert "--columns" not in refused(path).remedy


def test_spans_are_no_requests(tmp_path: Path) -> None:
    """The duration of a span is not proposed for a total."""
    path = write(tmp_path, [{"traceId": "a", "duration": 5}], "jsonl")
    assert "spans are read as OTLP" in refused(path).remedy


def test_totals_in_seconds_are_not_converted() -> None:
    """Case 18: the refusal counts the rows, and names the mapping that is the consent."""
    path = CASES / "18_total_in_seconds.jsonl"
    error = refused(path)
    assert error.reason == refusals.CONTRADICTORY_UNITS
    assert error.message == (
        f"{path}: total is about 1/1000 of the stage sum in 200/200 rows; looks like seconds"
    )
    mapping = "total_ms=total_ms:s"
    assert f"--columns {mapping};" in error.remedy
    log = Read(open_log(path, Wanted(columns=parse_columns(mapping)), now_ns=NOW_NS))
    assert log.ledger == {"accepted": 200}
    assert log.only.total_ms[0] == pytest.approx(6.1)


def in_seconds(wrong: int, right: int) -> pl.DataFrame:
    total = [0.101] * wrong + [101.0] * right
    return pl.DataFrame({"total_ms": total}).with_columns(
        request_id=pl.int_range(pl.len()).cast(pl.String), timestamp=1772445600, run_ms=100.0
    )


def test_some_rows_in_seconds_are_quarantined_only() -> None:
    """One wrong writer of several does not cost the others."""
    log = Read(open_frame(in_seconds(89, 11), now_ns=NOW_NS))
    assert log.ledger == {"accepted": 11, "quarantined.total_in_seconds": 89}
    with pytest.raises(Refused):
        open_frame(in_seconds(90, 10), now_ns=NOW_NS)


def test_seconds_after_the_first_rows_are_refused_at_the_end() -> None:
    """The whole log counts, though its beginning was sound."""
    head, tail = in_seconds(0, ROWS), in_seconds(20 * ROWS, 0)
    with pytest.raises(Refused, match=f"{20 * ROWS}/{21 * ROWS} rows"):
        Read(open_frame(pl.concat([head, tail]), now_ns=NOW_NS))


def test_failures_need_no_latency(tmp_path: Path) -> None:
    """A log of which every request timed out is one."""
    rows = [{"request_id": f"r{i}", "timestamp": 1772445600, "status": "timeout"} for i in range(4)]
    log = Read(open_log(write(tmp_path, rows, "jsonl"), now_ns=NOW_NS))
    assert log.ledger == {"accepted": 4, "failed": 4}


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.json", "log"])
def test_empty_files_have_no_rows(name: str, tmp_path: Path) -> None:
    """Nothing to read is said so."""
    path = tmp_path / name
    path.write_bytes(b"\n")
    assert refused(path).reason == refusals.NO_ROWS
    if name == "log.csv":
        path.write_text("request_id,total_ms\n")
        assert refused(path).reason == refusals.NO_ROWS


def test_lines_of_which_none_is_a_record(tmp_path: Path) -> None:
    """Text under a name that promises records is refused with how many lines there were."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"hello\n" + orjson.dumps([1]) + b"\n")
    error = refused(path)
    assert error.reason == refusals.NO_ROWS
    assert "none of the first 2 rows is a record" in error.message
