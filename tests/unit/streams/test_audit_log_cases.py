"""Situations on which latency tools mislead, read from their files."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from logs import NOW_NS, Read, cells

from tailbudget.models.audit import audit
from tailbudget.models.ranks import ranks
from tailbudget.models.select import collapse
from tailbudget.models.summarise import summarise
from tailbudget.models.window import Window
from tailbudget.schemas.records import LOGGED, SCHEDULE_WAIT, Columns, Outcome
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import Audit, Verdict
from tailbudget.streams.audit_log import open_log

DATA = Path(__file__).parents[2] / "data"
T0_NS = 1_772_445_600 * 10**9  # 2026-03-02T10:00:00Z
BOUND = 1 / 128  # of the sketch


def read(name: str) -> Read:
    return Read(open_log(DATA / name, now_ns=NOW_NS))


def summary_of(columns: Columns) -> Summary:
    return collapse(summarise(columns, pane_ns=3_600 * 10**9, thresholds_ms=()))


def audit_of(columns: Columns, slo: SloTarget) -> Audit:
    hour_ns = 3_600 * 10**9
    window = Window(hour_ns, hour_ns)
    window.add(summarise(columns, pane_ns=hour_ns, thresholds_ms=slo.thresholds_ms()))
    end_ns = T0_NS + hour_ns
    return audit(window.total(), window.cohorts(), slo=slo, start_ns=T0_NS, end_ns=end_ns)


def test_latency_counts_from_the_schedule() -> None:
    """Case 1: the wait for a permit is part of what a user waits, and the verdict is on it."""
    columns = read("cases/01_admission_gate.jsonl").only
    assert columns.total_ms.mean() == 1_900
    assert columns.stages == (LOGGED, "model_forward", SCHEDULE_WAIT)
    assert columns.stage_ms[0].tolist() == [500.0] * 8
    report = audit_of(columns, SloTarget(p50_ms=600, p95_ms=1000, p99_ms=1000))
    rows = {(row.percentile, row.basis): row for row in report.end_to_end}
    assert {basis for _, basis in rows} == {"scheduled", "success"}
    assert rows["p50", "scheduled"].measured_ms == pytest.approx(1_700, rel=BOUND)
    assert rows["p99", "scheduled"].measured_ms == pytest.approx(3_300, rel=BOUND)
    assert rows["p99", "success"].measured_ms == pytest.approx(500, rel=BOUND)
    assert rows["max", "scheduled"].measured_ms == 3_300
    assert rows["p50", "scheduled"].over == 7
    assert report.verdict is Verdict.BREACH


def test_the_logged_total_is_no_component() -> None:
    """Wait and stages cover the total from the schedule; nothing overlaps, nothing counts twice."""
    columns = read("cases/01_admission_gate.jsonl").only
    report = audit_of(columns, SloTarget(p50_ms=600))
    assert [row.stage for row in report.stages] == [
        "unattributed",
        "model_forward",
        "schedule_wait",
    ]
    assert report.stages[0].p99_ms == 0
    assert "overlap" not in report.ledger
    assert not [text for text in report.warnings if "overlap" in text]
    assert report.tail_driver is not None
    assert report.tail_driver.stage == SCHEDULE_WAIT
    assert report.end_to_end[0].basis == "scheduled"


def test_epochs_of_every_unit() -> None:
    """Case 19: seconds to nanoseconds and text lie within one second; the rest is quarantined."""
    log = read("cases/19_mixed_epochs.jsonl")
    assert list(log.only.ids) == ["s", "ms", "us", "ns", "str"]
    assert np.ptp(log.only.ts_ns) < 10**9
    assert log.ledger == {"accepted": 5, "quarantined.out_of_range_time": 2}


def test_a_negative_stage_is_a_missing_cell() -> None:
    """Case 21: the row keeps its total, and 19 values of the stage are left."""
    columns = read("cases/21_clock_step.jsonl").only
    total = summary_of(columns)
    assert ranks(total).n == 20
    queue = ranks(total, "queue")
    assert (queue.n, queue.min_ms, queue.max_ms) == (19, 5.0, 5.0)


def test_poison_costs_only_itself() -> None:
    """Case 36: three rows are read, and each of the others is accounted for by its line."""
    log = read("cases/31_poison.jsonl")
    assert list(log.only.ids) == ["ok1", "bom", "ok2"]
    assert ranks(summary_of(log.only)).quantile_ms(Fraction(1, 2)) == pytest.approx(101, rel=BOUND)
    assert [(dead.offset, dead.reason) for dead in log.rejected] == [
        (1, "rejected.not_json"),
        (2, "rejected.not_json"),
        (3, "rejected.not_object"),
        (4, "rejected.not_object"),
        (7, "rejected.not_a_number"),
        (8, "rejected.not_a_number"),
    ]
    assert log.ledger["quarantined.not_finite"] == 2
    assert log.ledger["quarantined.total_out_of_range"] == 1


@pytest.mark.parametrize("version", ["0.1", "0.5"])
def test_exports_of_aiperf(version: str) -> None:
    """Both are recognised, and the time to the first token is in the total once."""
    reading = open_log(DATA / f"aiperf_v{version}_profile_export.jsonl", now_ns=NOW_NS)
    assert reading.found.format == "aiperf"
    columns = Read(reading).only
    ok = columns.outcome == Outcome.OK
    assert ok.sum() == {"0.1": 89, "0.5": 10}[version]
    parts = [columns.stages.index(name) for name in ("prefill", "decode")]
    np.testing.assert_allclose(
        columns.stage_ms[parts][:, ok].sum(axis=0), columns.total_ms[ok], rtol=1e-12
    )
    assert columns.covariates == ("input_tokens", "output_tokens")


def test_results_of_llmperf() -> None:
    """Arrays without ids and times are recognised; rows have numbers, and times are unknown."""
    reading = open_log(DATA / "llmperf_bedrock_70b_individual.json", now_ns=NOW_NS)
    assert (reading.found.format, reading.found.times_known) == ("llmperf", False)
    log = Read(reading)
    assert log.ledger == {"accepted": 150, "failed": 49}
    assert list(log.only.ids) == [str(i) for i in range(150)]
    assert "throughput" not in str(cells(log.only))
