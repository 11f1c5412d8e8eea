"""The stages: how they relate, which drives the tail, and that parts add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gathered import T0_NS, gathered

from tailbudget.models.bootstrap import FEWEST_ROWS
from tailbudget.models.cohort_table import cohort_table
from tailbudget.models.sampled import sampled
from tailbudget.models.select import empty
from tailbudget.models.stage_table import StageTable, light_stage_table, stage_table
from tailbudget.models.tail import slow_fast
from tailbudget.models.window import Window
from tailbudget.schemas.sections import StageRole, StageRow
from tailbudget.schemas.summary import Summary

CASES = Path(__file__).parents[2] / "data" / "cases"
PANE_NS = 10_000_000_000
N = 4_000


def case(name: str) -> Summary:
    rows = [json.loads(line) for line in (CASES / f"{name}.jsonl").read_text().splitlines()]
    return gathered({column: [row[column] for row in rows] for column in rows[0]}).total


def requests(**stages: Any) -> Summary:
    return gathered({f"{name}_ms": values for name, values in stages.items()}).total


def by_stage(table: StageTable) -> dict[str, StageRow]:
    return {row.stage: row for row in table.rows}


def shares(table: StageTable) -> float:
    return sum(row.p99_share_pct or 0.0 for row in table.rows)


def as_window(total: Summary) -> Summary:
    """Return the sums that the stream keeps of the same requests: no sample."""
    window = Window(PANE_NS, PANE_NS)
    window.add(total)
    return window.total()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def test_eight_parallel_stages_are_one_fan_out() -> None:
    """Case 23: the stages overlap 7.77 times; together the branches are 327 of 338 ms."""
    total = case("23_parallel")
    table = stage_table(total, "p95")
    rows = by_stage(table)
    branches = tuple(f"sub{k}" for k in range(8))
    assert table.structure.groups == (branches,)
    assert {rows[name].role for name in branches} == {StageRole.PARALLEL}
    assert rows["sub3"].related == tuple(name for name in branches if name != "sub3")
    assert rows["sched"].role is StageRole.STAGE
    assert sum(rows[name].p99_share_pct or 0 for name in branches) == pytest.approx(32700 / 338)
    assert shares(table) == pytest.approx(100)
    assert rows["sub0"].p99_ms == 327.0
    assert "stages overlap: together they are 7.77 times the total" in table.notes
    assert any("sub1" in note and "at the same time" in note for note in table.notes)


def test_faster_branch_of_a_fan_out_saves_nothing() -> None:
    """Case 23: the structure tells that one branch at 0 ms saves 0, and all of them 327 ms."""
    total = case("23_parallel")
    relations = stage_table(total, "p95").structure
    rows = sampled(total)
    now = relations.covered_ms(rows.stages, rows.stage_ms)
    one, every = rows.stage_ms.copy(), rows.stage_ms.copy()
    one[:, rows.stages.index("sub4")] = 0.0
    every[:, [rows.stages.index(f"sub{k}") for k in range(8)]] = 0.0
    assert set(now - relations.covered_ms(rows.stages, one)) == {0.0}
    assert set(now - relations.covered_ms(rows.stages, every)) == {327.0}


@pytest.mark.parametrize("light", [False, True])
def test_request_is_a_container_of_queue_and_compute(light: bool) -> None:  # noqa: FBT001
    """Case 24: 100 is 60 and 40, not 200; from the sample and from a window's sums alike."""
    total = case("24_nested")
    table = light_stage_table(as_window(total), "p95") if light else stage_table(total, "p95")
    rows = by_stage(table)
    assert rows["request"].role is StageRole.CONTAINER
    assert rows["request"].related == ("compute", "queue")
    assert rows["request"].p99_share_pct is None
    assert rows["queue"].p99_share_pct == pytest.approx(60)
    assert rows["compute"].p99_share_pct == pytest.approx(40)
    assert rows["unattributed"].mean_slow_ms == pytest.approx(0)
    assert not any("overlap" in note for note in table.notes)


def test_accidental_sums_of_round_numbers_are_no_containers() -> None:
    """In requests that are all alike, a queue of 60 does not hold a 40 and a 20."""
    alike = {"request": 100.0, "queue": 60.0, "compute": 40.0, "pre": 20.0, "gpu": 20.0}
    table = stage_table(
        requests(**{name: [ms] * 50 for name, ms in alike.items()}, total=[100.0] * 50), "p95"
    )
    assert {one.stage for one in table.structure.containers} == {"request", "compute"}
    assert by_stage(table)["queue"].p99_share_pct == pytest.approx(60)
    in_turn = stage_table(requests(a=[60.0] * 50, b=[40.0] * 50, c=[100.0] * 50,
                                   total=[200.0] * 50), "p95")  # fmt: skip
    assert in_turn.structure.plain


@pytest.mark.parametrize("own_ms", [0.0, 3.0])
def test_containers_of_two_levels_never_drive(rng: np.random.Generator, own_ms: float) -> None:
    """Containers are found on each level, with time of their own or without."""
    queue, pre = rng.exponential(30, N), rng.gamma(4, 3, N)
    gpu = rng.gamma(9, 5, N) + np.where(rng.random(N) < 0.05, 300, 0)
    compute = pre + gpu + own_ms * rng.gamma(4, 0.25, N)
    request = queue + compute + own_ms * rng.gamma(4, 0.25, N)
    total = request + rng.exponential(5, N)
    table = stage_table(
        requests(queue=queue, pre=pre, gpu=gpu, compute=compute, request=request, total=total),
        "p95",
    )
    held = {one.stage: (one.parts, one.exact) for one in table.structure.containers}
    exact = own_ms == 0
    assert held == {"compute": (("gpu", "pre"), exact), "request": (("compute", "queue"), exact)}
    assert table.driver is not None
    assert table.driver.stage == "gpu"
    left = total - queue - pre - gpu
    assert by_stage(table)["unattributed"].p50_ms == pytest.approx(np.median(left), rel=0.1)
    assert shares(table) == pytest.approx(100)


def test_stages_after_one_another_are_neither(rng: np.random.Generator) -> None:
    """Stages that follow the same input one for one, but in turn, hold nothing and add up."""
    size = rng.integers(1, 50, N)
    one, two = 2 * size + rng.normal(10, 1, N), 2 * size + rng.normal(20, 1, N)
    table = stage_table(requests(one=one, two=two, total=one + two + 5), "p95")
    assert table.structure.plain
    assert {row.role for row in table.rows} == {StageRole.STAGE, StageRole.UNATTRIBUTED}


def test_straggler_of_a_fan_out_drives(rng: np.random.Generator) -> None:
    """When one branch of four is at times late, it is named; time beside the group is small."""
    branches = {f"shard{k}": rng.normal(100, 8, N) for k in range(4)}
    branches["shard2"] = branches["shard2"] + np.where(rng.random(N) < 0.05, 500, 0)
    merge = rng.normal(10, 1, N)
    total = np.max(list(branches.values()), axis=0) + merge + rng.exponential(3, N)
    table = stage_table(requests(**branches, merge=merge, total=total), "p95")
    rows = by_stage(table)
    assert table.structure.groups == (tuple(branches),)
    assert table.driver is not None
    assert table.driver.stage == "shard2"
    assert rows["shard2"].gap_ms == pytest.approx(500, rel=0.15)
    assert rows["unattributed"].delta_ms == pytest.approx(0, abs=10)
    assert rows["unattributed"].delta_interval_ms is None


def test_windows_find_the_straggler_too(rng: np.random.Generator) -> None:
    """Without a sample the parts add up all the same, and the same branch is named."""
    branches = {f"shard{k}": rng.normal(100, 8, N) for k in range(4)}
    branches["shard2"] = branches["shard2"] + np.where(rng.random(N) < 0.05, 500, 0)
    total = np.max(list(branches.values()), axis=0) + rng.exponential(3, N)
    window = as_window(requests(**branches, total=total))
    table, tail = light_stage_table(window, "p95"), slow_fast(window)
    assert table.driver is not None
    assert table.driver.stage == "shard2"
    assert tail is not None
    assert sum(row.gap_ms or 0 for row in table.rows) == pytest.approx(tail.total.delta_ms)
    assert shares(table) <= 100


def test_two_fan_outs_in_turn_are_two_groups(rng: np.random.Generator) -> None:
    """Of stages a beside b, then c beside d, both pairs are found."""
    a, b, c, d = (rng.gamma(4, 10, N) for _ in range(4))
    total = np.maximum(a, b) + np.maximum(c, d) + 1
    table = stage_table(requests(a=a, b=b, c=c, d=d, total=total), "p95")
    assert table.structure.groups == (("a", "b"), ("c", "d"))
    assert shares(table) == pytest.approx(100)


def test_total_as_logged_is_no_component(rng: np.random.Generator) -> None:
    """Where the wait since the schedule is added, the total as logged is in no sum and no row."""
    model, wait = rng.gamma(4, 10, N), rng.exponential(50, N)
    start_ns = T0_NS + np.arange(N) * 1_000_000_000
    due_ns = start_ns - (wait * 1e6).astype(np.int64)
    logged = gathered(
        {"model_ms": model, "total_ms": model, "timestamp": start_ns, "scheduled_ts": due_ns}
    ).total
    assert "logged" in logged.stages
    table = stage_table(logged, "p95")
    assert table.structure.serial == ("model", "schedule_wait")
    assert table.driver is not None
    assert table.driver.stage == "schedule_wait"
    assert "logged" not in by_stage(table)


def test_fraud_scoring_is_slow_by_feature_lookup_on_the_bulk_route(
    rng: np.random.Generator,
) -> None:
    """Situation (a): 8 % of the traffic fetches 200 rows, and is nearly all of the slow group."""
    n = 20_000
    bulk = rng.random(n) < 0.08
    lookup = np.where(bulk, rng.normal(270, 8, n), rng.lognormal(np.log(6), 0.15, n))
    model = rng.normal(60, 6, n) + np.where(rng.random(n) < 0.005, 350, 0)
    queue = rng.exponential(8, n)
    evidence = gathered(
        {
            "feature_lookup_ms": lookup,
            "model_ms": model,
            "queue_ms": queue,
            "total_ms": lookup + model + queue + rng.exponential(3, n),
            "batch_size": np.where(bulk, 200, rng.integers(1, 6, n)),
            "route": np.where(bulk, "bulk", np.where(rng.random(n) < 0.5, "checkout", "login")),
            "region": np.where(rng.random(n) < 0.5, "eu", "us"),
        },
        cohort_dims=["route", "region"],
        covariates=["batch_size"],
        every_s=0.01,
    )
    table = stage_table(evidence.total, "p95")
    rows = by_stage(table)
    assert table.driver is not None
    assert table.driver.stage == "feature_lookup"
    assert table.driver.tail_share_pct == pytest.approx(95, abs=5)
    assert [row.stage for row in table.rows if row.tail_only] == ["feature_lookup"]
    assert rows["feature_lookup"].p50_ms == pytest.approx(6, rel=0.05)
    assert rows["feature_lookup"].p99_ms == pytest.approx(280, rel=0.05)
    low, high = rows["feature_lookup"].delta_interval_ms or (0.0, 0.0)
    assert low < (rows["feature_lookup"].delta_ms or 0) < high
    assert high - low < 30
    worst = cohort_table(evidence.cohorts)[0]
    assert (worst.dimension, worst.value) == ("route", "bulk")
    assert worst.traffic_share_pct == pytest.approx(8, abs=1)
    assert worst.slow_share_pct == pytest.approx(92, abs=5)
    assert worst.p99_without_ms is not None
    assert worst.p99_without_ms < 130


def test_tail_only_wants_a_thousand_requests(rng: np.random.Generator) -> None:
    """Of 999 requests nobody knows whether the p99 is blown; of 3,000 steady ones it is not."""
    for n, want in ((999, None), (3_000, False)):
        model = rng.exponential(50, n)
        table = stage_table(requests(model=model, total=model + 5), "p95")
        assert by_stage(table)["model"].tail_only is want


def test_intervals_cover_the_difference_and_repeat(rng: np.random.Generator) -> None:
    """The same requests have the same interval, which narrows to 0 where nothing varies."""
    queue = rng.exponential(40, N)
    total = requests(queue=queue, fixed=np.full(N, 20.0), total=queue + 20)
    table = stage_table(total, "p95")
    assert table == stage_table(total, "p95")
    rows = by_stage(table)
    low, high = rows["queue"].delta_interval_ms or (0.0, 0.0)
    assert 0 < low < (rows["queue"].delta_ms or 0) < high
    assert rows["fixed"].delta_interval_ms == pytest.approx((0, 0), abs=1e-6)
    assert "2,000 bootstrap resamples of " in table.notes[-1]


def test_small_bands_have_no_interval() -> None:
    """With three requests in the slow band there is no interval, and a note says so."""
    queue = np.arange(1.0, 51.0) ** 2
    table = stage_table(requests(queue=queue, total=queue + 1), "p95")
    assert all(row.delta_interval_ms is None for row in table.rows)
    assert table.notes[-1].endswith(f"wants {FEWEST_ROWS} of each")
    assert by_stage(table)["queue"].delta_ms is not None


def test_threshold_moves_the_bands(rng: np.random.Generator) -> None:
    """Slow from 300 ms on is another mean than slow from the p95 on; an empty band has none."""
    queue = np.where(rng.random(N) < 0.02, 400.0, 50.0)
    total = requests(queue=queue, total=queue + 10)
    assert by_stage(stage_table(total, 300.0))["queue"].mean_slow_ms == pytest.approx(400)
    nothing = stage_table(total, 5_000.0)
    assert nothing.driver is None
    assert by_stage(nothing)["queue"].delta_ms is None
    assert by_stage(nothing)["queue"].p50_ms == pytest.approx(50, rel=1 / 128)


def test_no_requests_have_no_stages() -> None:
    """An empty summary, and one of failures, are no error and no row of zeros."""
    assert stage_table(empty("svc"), "p95").rows == ()
    failed = gathered({"total_ms": [None, None], "status": ["error", "timeout"]}).total
    table = stage_table(failed, "p95")
    assert (table.rows, table.driver) == ((), None)
