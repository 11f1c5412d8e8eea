"""A whole audit, and its report."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tailbudget.models.audit import as_report, audit
from tailbudget.models.window import Window
from tailbudget.schemas.cohorts import OTHER
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import Audit, Verdict

SLO = SloTarget(p95_ms=500, p99_ms=1_000)
START_NS = 1_772_445_600_000_000_000  # 2026-03-02T10:00:00Z

WindowBuild = Callable[..., Window]


def judge(window: Window, slo: SloTarget | None = SLO) -> Audit:
    return audit(
        window.total(),
        window.cohorts(),
        slo=slo,
        start_ns=START_NS,
        end_ns=START_NS + 60_500_000_000,
    )


@pytest.fixture
def slow_chat(window_of: WindowBuild) -> Window:
    """Return 1,900 fast requests, 80 that wait in the queue on one route, and 20 timeouts."""
    return window_of(
        [100.0] * 1_900 + [900.0] * 80,
        stages={"queue": [10.0] * 1_900 + [810.0] * 80, "model": [80.0] * 1_980},
        failed=[30_000.0] * 20,
        thresholds_ms=SLO.thresholds_ms(),
        cohorts=[(("route", "embed"),)] * 1_900 + [(("route", "chat"),)] * 100,
    )


def test_audit_says_verdict_driver_and_cohort(slow_chat: Window) -> None:
    """The parts of an audit are those of the same requests."""
    got = judge(slow_chat)
    rows = {(row.percentile, row.basis): row for row in got.end_to_end}
    assert got.verdict is Verdict.OK
    assert rows["p95", "all"].measured_ms == pytest.approx(100, rel=1 / 128)
    assert rows["p99", "all"].measured_ms == 900.0
    assert rows["p99", "all"].over == 20
    assert got.tail_driver is not None
    assert got.tail_driver.stage == "queue"
    assert got.cohorts[0].value == "chat"
    assert got.cohorts[0].slow_share_pct == pytest.approx(100)
    assert (got.provenance.n, got.provenance.n_ok, got.provenance.n_failed) == (2_000, 1_980, 20)
    assert got.provenance.start == "2026-03-02T10:00:00.000Z"
    assert got.provenance.end == "2026-03-02T10:01:00.500Z"
    assert "20 of 2,000 requests failed (1 %)" in got.warnings


def test_stage_table_has_percentiles_and_bands(slow_chat: Window) -> None:
    """Each stage has its own percentiles beside its means in the two bands."""
    rows = {row.stage: row for row in judge(slow_chat).stages}
    assert list(rows) == ["unattributed", "model", "queue"]
    queue = rows["queue"]
    assert (queue.n, queue.p99_ms) == (1_980, 810.0)
    assert queue.p50_ms == pytest.approx(10, rel=1 / 128)
    assert queue.mean_fast_ms == pytest.approx(10)
    assert queue.tail_share_pct == pytest.approx(100)
    assert rows["unattributed"].delta_ms == pytest.approx(0)


def test_threshold_moves_the_slow_band(slow_chat: Window) -> None:
    """With 500 ms as the threshold all slow requests have the queue's slow mean."""
    got = audit(
        slow_chat.total(),
        slow_chat.cohorts(),
        slo=SLO,
        start_ns=0,
        end_ns=1,
        slow_request_threshold=500.0,
    )
    assert got.tail_driver is not None
    assert got.tail_driver.mean_slow_ms == pytest.approx(810)


def test_cell_of_a_negative_stage_is_missing(window_of: WindowBuild) -> None:
    """A stage that 19 of 20 rows carry has n = 19, and its mean knows nothing of the other."""
    queue = [10.0] * 19 + [math.nan]
    row = judge(window_of([100.0] * 20, stages={"queue": queue})).stages[-1]
    assert (row.stage, row.n, row.p99_ms) == ("queue", 19, 10.0)


REPORT_KEYS = {
    "": "schema verdict provenance end_to_end stages tail_driver shape cohorts cold_start causes "
    "optimizations recommendation ledger warnings",
    "provenance": "service start end n n_ok n_failed slo",
    "end_to_end": "percentile measured_ms slo_ms headroom_ms status basis note",
    "stages": "stage n p50_ms p95_ms p99_ms mean_fast_ms mean_slow_ms delta_ms tail_share_pct",
    "cohorts": "dimension value n p99_ms delta_ms slow_share_pct traffic_share_pct",
}


def test_report_has_the_documented_keys(slow_chat: Window) -> None:
    """The keys of the report and of its rows are the documented ones; the unknown is null."""
    report = as_report(judge(slow_chat))
    assert set(report) == set(REPORT_KEYS[""].split())
    assert report["schema"] == "tailbudget.audit/1"
    assert report["verdict"] == "ok"
    for name in ("provenance", "end_to_end", "stages", "cohorts"):
        first = report[name] if name == "provenance" else report[name][0]
        assert set(first) >= set(REPORT_KEYS[name].split())
    assert (report["cold_start"], report["recommendation"], report["causes"]) == (None, None, [])
    assert report["provenance"]["slo"]["p95_ms"] == 500


@pytest.mark.parametrize("empty", [True, False])
def test_report_is_strict_json(slow_chat: Window, empty: bool) -> None:  # noqa: FBT001
    """No NaN and no infinity reach the report, even when nothing was measured."""
    report = as_report(judge(Window(10, 10) if empty else slow_chat))
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert all(not isinstance(value, np.generic) for value in _leaves(report))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    else:
        yield value


def test_empty_window_has_no_data() -> None:
    """Without requests the verdict is no_data, and no table has a row of zeros."""
    got = judge(Window(10, 10))
    assert got.verdict is Verdict.NO_DATA
    assert (got.stages, got.cohorts, got.tail_driver) == ((), (), None)


def with_ledger(summary: Summary, **counts: int) -> Summary:
    named = {reason.replace("__", "."): count for reason, count in counts.items()}
    return replace(summary, ledger={(0, reason): count for reason, count in named.items()})


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        (
            {"quarantined__total_in_seconds": 150},
            "total is about 1/1000 of the stage sum in 150/200 rows; looks like seconds",
        ),
        (
            {"rejected__not_json": 1_200, "quarantined__future": 1},
            "1,201 records are not in the figures: quarantined.future 1, rejected.not_json 1,200",
        ),
        ({"missing__negative_stage": 1}, "1 negative stage value left out as missing"),
        ({"missing__negative_stage": 2}, "2 negative stage values left out as missing"),
        (
            {"clamped": 3},
            "3 values lie outside of the sketch's range; their percentiles are bounds",
        ),
    ],
)
def test_ledger_warns(window_of: WindowBuild, counts: dict[str, int], text: str) -> None:
    """What was left out of the figures is said in a sentence, and counted in the ledger."""
    window = window_of([100.0] * 50)
    total = with_ledger(window.total(), **counts)
    got = audit(total, window.cohorts(), slo=SLO, start_ns=0, end_ns=1)
    assert got.warnings == (text,)
    assert sum(got.ledger.values()) == sum(counts.values())


def test_parallel_stages_are_said_to_overlap(window_of: WindowBuild) -> None:
    """Eight branches of 327 ms and 10 ms more in 338 ms overlap, and no share exceeds 100 %."""
    branches = {f"branch_{k}": [327.0] * 50 for k in range(8)}
    got = judge(window_of([338.0] * 50, stages={**branches, "merge": [10.0] * 50}))
    assert got.warnings == (
        "stages overlap: together they are 7.77 times the total, so their shares do not add up",
    )


def test_missing_target_and_folded_cohorts_warn(window_of: WindowBuild) -> None:
    """Without a target nothing was judged; traffic in "(other)" is named with its share."""
    got = judge(window_of([100.0] * 4, cohorts=[OTHER, *[(("route", "a"),)] * 3]), None)
    assert got.warnings == (
        "no target is set: nothing was judged",
        "25 % of the requests are in cohorts beyond the limit, shown as (other)",
    )
