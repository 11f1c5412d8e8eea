"""The worked situations of the documentation, from a log file to the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from audited_logs import Command
from golden import golden, seeded_log
from situations import classifier_log, frame, fraud_scoring_log, nightly_batch_log

SEEDS = [1, 2, 3]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bulk_route_gets_a_batched_fetch(audit: Command, tmp_path: Path, seed: int) -> None:
    """The lookups of one bulk route are the tail; routing it away helps until they are mended."""
    log = tmp_path / "scoring.parquet"
    frame(fraud_scoring_log(seed)).write_parquet(log)
    found = audit(log, "--slo", "p99=200", "--service", "fraud-scoring")
    report = found.report
    assert (found.status, report["verdict"]) == (1, "breach")
    assert report["tail_driver"]["stage"] == "feature_lookup"
    assert found.stage("feature_lookup")["tail_only"] is True
    cause = report["causes"][0]
    assert (cause["cause"], cause["stage"]) == ("input_shape", "feature_lookup")
    assert (cause["covariate"], cause["cohort"]) == ("batch_size", "route=bulk")
    worst = report["cohorts"][0]
    assert (worst["dimension"], worst["value"]) == ("route", "bulk")
    assert worst["traffic_share_pct"] < 10
    assert worst["slow_share_pct"] > 90
    fixes = report["optimizations"]
    assert fixes[0]["key"] == "batched_fetch"
    assert next(fix["key"] for fix in fixes if fix["horizon"] == "short") == "route_bulk"
    assert [fix["key"] for fix in fixes if "cache" in fix["key"]] == []
    assert report["recommendation"]["choice"] == "fix_tail"
    assert report["recommendation"]["mitigation"].startswith("Route bulk traffic")


@pytest.mark.parametrize("seed", SEEDS)
def test_long_inputs_are_no_case_for_another_model(
    audit: Command, tmp_path: Path, seed: int
) -> None:
    """One input in a hundred breaks the target, and any model would be as slow on it."""
    log = tmp_path / "classifier.csv"
    frame(classifier_log(seed)).write_csv(log)
    found = audit(log, "--slo", "p99=1500")
    cause = found.report["causes"][0]
    assert found.status == 1
    assert (cause["cause"], cause["covariate"]) == ("input_shape", "sequence_length")
    said = found.report["recommendation"]["reason"]
    assert "A model swap would not help: 1." in said
    assert "% of requests have sequence_length above" in said
    first = found.report["optimizations"][0]["key"]
    assert first in {"limit_length", "route_long_inputs"}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_nightly_batch_is_refused(audit: Command, tmp_path: Path, seed: int) -> None:
    """A worker that scores item after item at night has no latency budget."""
    log = tmp_path / "nightly.jsonl"
    frame(nightly_batch_log(seed)).write_ndjson(log)
    found = audit(log, "--slo", "p99=1500")
    report = found.report
    assert found.status == 3
    assert report["headline"].startswith("REFUSED: This looks like batch or offline work: ")
    assert "throughput or profiling tool" in report["refused"]
    assert (report["causes"], report["optimizations"], report["recommendation"]) == ([], [], None)
    assert report["end_to_end"] != []


def test_a_workload_is_what_it_is_declared_to_be(audit: Command, tmp_path: Path) -> None:
    """What is said goes before what is seen, both ways."""
    night, day = tmp_path / "nightly.jsonl", tmp_path / "scoring.jsonl"
    frame(nightly_batch_log(1)).write_ndjson(night)
    frame(fraud_scoring_log(1, 2_000)).write_ndjson(day)
    assert audit(night, "--workload", "online").status == 4  # 200 requests are too few
    assert (
        audit(day, "--workload", "batch")
        .report["refused"]
        .startswith("The workload is declared to be batch. Use a throughput")
    )


def test_the_report_of_a_seeded_log_is_as_it_was(tailbudget: Command, tmp_path: Path) -> None:
    """From a file through the command line to Markdown, to the letter."""
    found = tailbudget(*seeded_log(tmp_path))
    assert found.status == 1
    assert found.out == golden("file", "md")
