"""Situations on which latency tools mislead, audited through the command line."""

from __future__ import annotations

import statistics
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson
import pytest
from audited_logs import BOUND, CASES, DATA, T0_MS, Command, lines

Row = dict[str, Any]


def near(ms: float) -> Any:
    return pytest.approx(ms, rel=BOUND)


def rows_of(name: str) -> list[Row]:
    return [orjson.loads(line) for line in (CASES / name).read_bytes().splitlines()]


def test_case_1_latency_counts_from_the_schedule(audit: Command) -> None:
    """Both latencies are there, and the verdict is on the one that a user waited."""
    found = audit(CASES / "01_admission_gate.jsonl", "--slo", "p50=600,p95=1000,p99=1000")
    assert (found.status, found.report["verdict"]) == (1, "breach")
    logged = [found.at(name, "success")["measured_ms"] for name in ("p50", "p99")]
    assert logged == [near(500), near(500)]
    rows = {name: found.at(name, "scheduled") for name in ("p50", "p95", "p99", "max")}
    assert rows["p50"]["measured_ms"] == near(1_700)
    assert rows["p99"]["measured_ms"] == near(3_300)
    assert rows["max"]["measured_ms"] == 3_300
    assert {rows[name]["status"] for name in ("p50", "p95", "p99")} == {"breach"}
    assert found.report["tail_driver"]["stage"] == "schedule_wait"
    assert not found.warned("closed-loop")


def test_case_1_without_a_schedule_is_a_lower_bound(audit: Command, tmp_path: Path) -> None:
    """Where each request starts as the one before ends, nobody knows what users waited for."""
    rows = rows_of("01_admission_gate.jsonl")
    for row in rows:
        del row["scheduled_ts"]
    found = audit(lines(tmp_path / "log.jsonl", rows))
    assert found.at("p99")["measured_ms"] == near(500)
    assert found.warned("closed-loop load: 1 request in flight", "a lower bound")


def test_case_1_at_many_requests_a_second(audit: Command, tmp_path: Path) -> None:
    """A caller that waits is seen among hundreds of quick requests; others are not."""
    totals = [20 + i * 37 % 50 for i in range(600)]
    starts = [T0_MS, *(T0_MS + ms for ms in accumulate(totals))]
    waits = [{"timestamp": at, "total_ms": ms} for at, ms in zip(starts, totals, strict=False)]
    found = audit(lines(tmp_path / "waits.jsonl", waits))
    assert found.warned("closed-loop load: 1 request in flight", "a lower bound")
    opened = [{**row, "timestamp": T0_MS + 45 * i} for i, row in enumerate(waits)]
    assert not audit(lines(tmp_path / "opened.jsonl", opened)).warned("closed-loop")


def test_case_3_timeouts_are_slower_than_their_limit(audit: Command) -> None:
    """Never green: a tenth of the requests took longer than 30 s, whatever the others took."""
    found = audit(CASES / "03_timeouts_null.jsonl", "--slo", "p95=500")
    assert (found.status, found.report["verdict"]) == (1, "breach")
    p95 = found.at("p95")
    assert (p95["measured_ms"], p95["status"]) == (None, "breach")
    assert "over 30,000 ms (timeout)" in p95["note"]
    assert found.at("p95", "success")["measured_ms"] == near(100)
    assert found.report["provenance"]["n_failed"] == 10
    assert found.warned("10 of 100 requests failed (10 %)")


def test_case_4_fast_failures_are_no_speed(audit: Command) -> None:
    """The median is that of the answers, and the rejected are told on a line of their own."""
    found = audit(CASES / "04_fast_429.jsonl", "--slo", "p50=500")
    assert (found.status, found.report["verdict"]) == (1, "breach")
    assert found.at("p50", "success")["measured_ms"] == near(900)
    assert found.at("p50")["measured_ms"] is None
    assert found.warned("55 of 100 requests failed (55 %)")


def test_case_5_nothing_but_failures_is_no_measurement(audit: Command, tmp_path: Path) -> None:
    """Eight failures that took 0 ms pass nothing."""
    failed = [{"status": "error", "total_ms": 0}] * 8
    found = audit(lines(tmp_path / "log.jsonl", failed), "--slo", "p99=200")
    assert (found.status, found.report["verdict"]) == (4, "no_data")
    for name in ("p50", "p95", "p99", "max"):
        assert found.at(name)["measured_ms"] is None
    assert "no measurement: all 8 requests failed" in found.at("p99")["note"]


def test_case_10_an_unmarked_cold_start_has_a_name(audit: Command, tmp_path: Path) -> None:
    """A replica's first request after a silence is suspected, and no other is."""
    old = [{"replica": "p1", "total_ms": 100.0, "timestamp": T0_MS + 1000 * i} for i in range(300)]
    wakes = T0_MS + 299_000 + 20 * 60_000
    new = [
        {"replica": "p2", "total_ms": 100.0 if i else 14_000.0, "timestamp": wakes + 1000 * i}
        for i in range(300)
    ]
    cold = audit(lines(tmp_path / "log.jsonl", old + new)).report["cold_start"]
    (start,) = cold["suspected"]
    assert (start["instance"], start["idle_s"]) == ("p2", 1_200)
    assert (start["at"], start["worst_ms"]) == ("2026-03-02T10:24:59.000Z", 14_000)


def test_case_11_one_deploy_is_left_out_once(audit: Command) -> None:
    """A version announced thrice is one deploy; other services and environments are not ours."""
    log = CASES / "11_deploy_requests.jsonl"
    events = ("--deploys", CASES / "11_deploy_events.jsonl", "--service", "scorer")
    cold = audit(log, *events, "--slo", "p99=500").report["cold_start"]
    (window,) = cold["deploys"]
    assert (window["start"], window["end"]) == ("2026-03-02T10:10:00Z", "2026-03-02T10:15:40Z")
    assert cold["excluded"] == 57
    assert cold["unfiltered_p99_ms"] == near(900)
    assert cold["filtered_p99_ms"] == near(100)
    assert cold["verdict"] == "cold_start"


def test_case_11_without_events_nothing_is_filtered(audit: Command) -> None:
    """What nobody announced cannot be left out, and is not the same as unfiltered."""
    cold = audit(CASES / "11_deploy_requests.jsonl").report["cold_start"]
    assert (cold["filtered_p99_ms"], cold["verdict"]) == (None, "not_computable")
    assert cold["unfiltered_p99_ms"] == near(900)


def test_case_13_one_outlier_moves_no_percentile(audit: Command) -> None:
    """P99 of 100 by nearest rank is the 99th; the maximum and n are told beside it."""
    found = audit(CASES / "13_one_outlier_n100.jsonl")
    p99, most = found.at("p99"), found.at("max")
    assert p99["measured_ms"] == near(1)
    assert (p99["n"], most["measured_ms"]) == (100, 10_000_000)
    assert "n=100" in p99["note"]
    assert found.status == 4


def test_case_14_five_requests_are_too_few(audit: Command) -> None:
    """Neither a breach nor a pass: this P95 is the maximum."""
    found = audit(CASES / "14_five_samples.jsonl", "--slo", "p95=500")
    assert (found.status, found.report["verdict"]) == (4, "insufficient")
    assert found.at("p95")["note"] == "insufficient (n=5; this p95 is the maximum)"


def test_case_18_seconds_are_not_converted_in_silence(audit: Command) -> None:
    """Totals that cannot be of the unit of the stages stop the audit, until they are told."""
    log = CASES / "18_total_in_seconds.jsonl"
    found = audit(log)
    assert (found.status, found.out) == (3, "")
    said = "total is about 1/1000 of the stage sum in 200/200 rows; looks like seconds"
    assert said in found.err
    assert "--columns total_ms=total_ms:s" in found.err
    told = audit(log, "--columns", "total_ms=total_ms:s")
    totals_ms = [row["total_ms"] * 1_000 for row in rows_of(log.name)]
    assert told.report["provenance"]["n"] == 200
    assert told.at("p50")["measured_ms"] == near(statistics.median_low(totals_ms))


def test_case_19_epochs_of_every_unit_are_one_second(audit: Command) -> None:
    """Seconds, milliseconds, micro- and nanoseconds and text agree; an ISBN and 0 are no times."""
    found = audit(CASES / "19_mixed_epochs.jsonl")
    assert found.report["provenance"]["n"] == 5
    assert found.report["provenance"]["start"] == "2026-03-02T10:00:00.000Z"
    assert found.report["provenance"]["end"] == "2026-03-02T10:00:10.000Z"
    assert found.report["ledger"]["quarantined.out_of_range_time"] == 2


@pytest.mark.parametrize("fraction", ["12345678", "123456789", "5"])
def test_case_19_fractions_of_any_length(audit: Command, tmp_path: Path, fraction: str) -> None:
    """RFC 3339 sets no number of digits."""
    rows = [{"timestamp": f"2026-03-02T10:00:19.{fraction}Z", "total_ms": 5.0}] * 3
    made = lines(tmp_path / "log.jsonl", [{**row, "request_id": i} for i, row in enumerate(rows)])
    found = audit(made).report
    assert found["ledger"] == {"accepted": 3}
    assert found["provenance"]["start"] == "2026-03-02T10:00:10.000Z"


def test_case_21_a_negative_stage_is_a_missing_cell(audit: Command) -> None:
    """The row keeps its total, the stage has 19 values, and the mean knows nothing of -10,000."""
    found = audit(CASES / "21_clock_step.jsonl")
    assert found.report["provenance"]["n"] == 20
    assert found.stage("queue")["n"] == 19
    assert found.stage("queue")["p99_ms"] == near(5)
    assert found.report["ledger"]["missing.negative_stage"] == 1
    assert found.warned("1 negative stage")


def test_case_23_branches_count_once(audit: Command) -> None:
    """Eight at a time take as long as one of them, and one less saves nothing."""
    found = audit(CASES / "23_parallel.jsonl")
    shares = [row["p99_share_pct"] for row in found.report["stages"]]
    branches = [
        row["p99_share_pct"] for row in found.report["stages"] if row["stage"].startswith("sub")
    ]
    assert len(branches) == 8
    assert sum(branches) <= 97
    assert sum(shares) <= 100.0001
    assert found.warned("stages overlap", "7.77")
    assert [fix for fix in found.report["optimizations"] if fix["p99_saved_ms"]] == []


def test_case_24_a_container_is_no_part(audit: Command) -> None:
    """What holds the others is told as such, and the parts share what it takes."""
    found = audit(CASES / "24_nested.jsonl")
    assert found.stage("request")["role"] == "container"
    assert found.stage("request")["p99_share_pct"] is None
    assert found.stage("queue")["p99_share_pct"] == near(60)
    assert found.stage("compute")["p99_share_pct"] == near(40)


def test_case_26_retries_are_one_request(audit: Command) -> None:
    """A user waited for two timeouts and an answer."""
    found = audit(CASES / "26_retries.jsonl")
    assert found.report["provenance"]["n"] == 1
    assert found.at("max")["measured_ms"] == 121_200
    assert found.report["ledger"]["retry"] == 2


def test_case_36_poison_costs_only_itself(audit: Command, tmp_path: Path) -> None:
    """Three rows are in the figures; each other one is told with its line and its reason."""
    out = tmp_path / "rejected.jsonl"
    log = CASES / "31_poison.jsonl"
    found = audit(log, "--rejected", out)
    assert found.at("p50")["measured_ms"] == near(101)
    assert found.report["provenance"]["n"] == 3
    assert found.report["ledger"]["quarantined.not_finite"] == 2
    assert found.report["ledger"]["quarantined.total_out_of_range"] == 1
    told = [orjson.loads(line) for line in out.read_bytes().splitlines()]
    assert [(row["where"].removeprefix(f"{log}"), row["reason"]) for row in told] == [
        (", row 2", "rejected.not_json"),
        (", row 3", "rejected.not_json"),
        (", row 4", "rejected.not_object"),
        (", row 5", "rejected.not_object"),
        (", row 8", "rejected.not_a_number"),
        (", row 9", "rejected.not_a_number"),
    ]
    assert "12.5ms" in told[4]["raw"]
    assert "rejected 6 rows in all" in found.err


def test_case_44_aggregates_are_refused(audit: Command) -> None:
    """A summary of a load tester is named, and its status is not that of a breach."""
    found = audit(DATA / "mlperf_llama2_server_summary.txt", "--slo", "p99=1")
    assert (found.status, found.out) == (3, "")
    assert "aggregated (MLPerf LoadGen); needs one row per request" in found.err
