"""The generator of simulated traffic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.streams.scenario import Deploy, Fault, Scenario, demonstration
from tailbudget.streams.traffic import STAGES, deploys, frame, records

START_NS = 1_772_445_600_000_000_000


def rows(scenario: Scenario, t0_s: float, t1_s: float) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in records(scenario, START_NS, t0_s, t1_s)]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2_000), st.integers(0, 2_000), st.integers(0, 5))
def test_records_do_not_depend_on_how_time_is_cut(cut_ms: int, length_ms: int, seed: int) -> None:
    """The records of an interval are those of its two parts, wherever it is cut."""
    scenario = Scenario(seed=seed, rate=100)
    end_ms = cut_ms + length_ms
    whole = records(scenario, START_NS, 0, end_ms / 1000)
    first = records(scenario, START_NS, 0, cut_ms / 1000)
    assert first + records(scenario, START_NS, cut_ms / 1000, end_ms / 1000) == whole


def test_another_seed_gives_other_records() -> None:
    """The seed decides, and ids of two seeds or two starts never meet."""
    ids = [
        {row["request_id"] for row in map(orjson.loads, records(scenario, start_ns, 0, 2))}
        for scenario in (Scenario(seed=1), Scenario(seed=2))
        for start_ns in (START_NS, START_NS + 1_000_000)
    ]
    assert len(set().union(*ids)) == sum(map(len, ids)) > 1_000


def test_a_record_has_the_columns_of_the_format() -> None:
    """A record carries id, time, service, outcome, stages, covariates and dimensions."""
    row = rows(Scenario(rate=100), 0, 1)[0]
    assert list(row) == [
        *("request_id", "service", "timestamp", "status", "total_ms", "timeout_ms"),
        *(f"{stage}_ms" for stage in STAGES),
        *("input_tokens", "output_tokens", "batch_size", "candidates"),
        *("route", "model_variant", "region", "customer_tier"),
    ]
    assert str(row["timestamp"]).startswith("2026-03-02T10:00:00.")


def test_times_ascend_within_the_interval() -> None:
    """Records come in order of time, and none lies outside of the interval."""
    times = [str(row["timestamp"]) for row in rows(Scenario(rate=500), 3.05, 4.95)]
    assert times == sorted(times)
    assert "2026-03-02T10:00:03.05" <= times[0] < times[-1] < "2026-03-02T10:00:04.95"


def test_rate_and_failures_are_as_asked() -> None:
    """The rate is that of the scenario on average, and half a per cent of requests fail."""
    table = frame(Scenario(rate=200), START_NS, 0, 300)
    assert len(table) == pytest.approx(60_000, rel=0.02)
    failed = table.filter(pl.col("status") != "ok")
    assert len(failed) / len(table) == pytest.approx(0.005, rel=0.25)
    assert set(failed["status"]) == {"error", "timeout", "rejected"}
    assert failed.filter(pl.col("status") == "timeout")["total_ms"].is_null().all()


def test_input_lengths_are_heavy_tailed() -> None:
    """The longest inputs of a route are many times its median."""
    table = frame(Scenario(), START_NS, 0, 60).filter(pl.col("route") == "chat")
    lengths = table["input_tokens"].to_numpy()
    assert np.median(lengths) == pytest.approx(350, rel=0.06)
    assert np.quantile(lengths, 0.99) > 6 * np.median(lengths)


def test_prefill_is_quadratic_and_decode_follows_output_and_batch() -> None:
    """Stages depend on the shape of the input as a model server's do."""
    scenario = replace(Scenario(), variants=(("only", 1.0, 1.0),))
    table = frame(scenario, START_NS, 0, 60).filter(pl.col("status") == "ok")
    n = table["input_tokens"].to_numpy().astype(float)
    batch = table["batch_size"].to_numpy()
    prefill = table["prefill_ms"].to_numpy() / (1 + 0.02 * (batch - 1))
    expected = 5 + 0.02 * n + 4e-6 * n * n
    assert np.median(prefill / expected) == pytest.approx(1, rel=0.01)
    decode = table["decode_ms"].to_numpy() / table["output_tokens"].to_numpy()
    assert np.median(decode / (6 + 0.35 * batch)) == pytest.approx(1, rel=0.01)


def test_totals_leave_time_unattributed() -> None:
    """The total is the sum of the stages and the network, which is no stage."""
    table = frame(Scenario(), START_NS, 0, 10).filter(pl.col("status") == "ok")
    rest = (
        table["total_ms"]
        - table.select(pl.sum_horizontal([f"{stage}_ms" for stage in STAGES])).to_series()
    )
    assert rest.min() > 0  # type: ignore[operator]
    assert rest.median() == pytest.approx(5, rel=0.2)


def test_only_some_routes_retrieve() -> None:
    """A route without documents has neither a retrieve stage nor candidates."""
    table = frame(Scenario(), START_NS, 0, 10)
    absent = table["retrieve_ms"].is_null() & (table["status"] == "ok")
    assert set(table.filter(absent)["route"]) == {"chat", "summarise"}
    assert table.filter(absent)["candidates"].is_null().all()


def test_a_fault_slows_its_stage_and_no_other_while_it_lasts() -> None:
    """Between its start and its end the stage is slower by the factor; the rest is untouched."""
    faulty = replace(Scenario(), faults=(Fault("retrieve", 12, after_s=10, for_s=5),))
    table, plain = (frame(scenario, START_NS, 5, 20) for scenario in (faulty, Scenario()))
    ratio = (table["retrieve_ms"] / plain["retrieve_ms"]).to_numpy()
    inside = (table["timestamp"] >= "2026-03-02T10:00:10") & (
        table["timestamp"] < "2026-03-02T10:00:15"
    )
    seen = inside.to_numpy()
    assert np.nanmin(ratio[seen]) == pytest.approx(12, rel=0.001)
    assert np.nanmax(ratio[~seen]) == 1
    others = [f"{stage}_ms" for stage in STAGES if stage != "retrieve"]
    same = table.select(others).filter(table["status"] == plain["status"])
    assert same.equals(plain.select(others).filter(table["status"] == plain["status"]))


def test_the_demonstration_breaches_while_its_fault_lasts() -> None:
    """The fault lifts the 99th percentile far above the healthy one, and retrieve drives it."""
    scenario = demonstration()
    healthy, faulty = (frame(scenario, START_NS, t0, t0 + 40) for t0 in (100, 60))
    p99 = [table["total_ms"].quantile(0.99) or 0 for table in (healthy, faulty)]
    assert p99[0] < 1000 < 1.5 * p99[0] < p99[1]
    slowest = faulty.filter(pl.col("total_ms") >= p99[1])
    means = {stage: slowest[f"{stage}_ms"].mean() for stage in STAGES}
    assert max(means, key=lambda stage: means[stage]) == "retrieve"  # type: ignore[arg-type, return-value]


def test_a_deploy_is_announced_and_slow_at_first() -> None:
    """The event names service, environment, version and time; cold replicas are slower."""
    scenario = replace(Scenario(), deploys=(Deploy("v7", after_s=20),))
    assert [orjson.loads(event) for event in deploys(scenario, START_NS, 0, 60)] == [
        {
            "service": "chat",
            "env": "prod",
            "version": "v7",
            "kind": "deploy",
            "ts": "2026-03-02T10:00:20.000Z",
        }
    ]
    assert deploys(scenario, START_NS, 0, 20) == deploys(scenario, START_NS, 20.1, 60) == []
    before, after = (frame(scenario, START_NS, t0, t0 + 5) for t0 in (15, 20))
    mean = [table["prefill_ms"].mean() for table in (before, after)]
    assert mean[1] > 1.15 * mean[0]  # type: ignore[operator]


def test_happenings_are_told_in_order() -> None:
    """What happens in an interval is named once, in order of time."""
    scenario = demonstration(fault_after_s=60, fault_for_s=40)
    assert scenario.happenings(0, 200) == (
        "deploy of v2",
        "retrieve becomes 12 times slower",
        "retrieve is itself again",
    )
    assert scenario.happenings(60, 60.1) == ("retrieve becomes 12 times slower",)


def test_nothing_happens_before_the_start() -> None:
    """An interval that begins before the start is refused; an empty one is empty."""
    with pytest.raises(ValueError, match="before the start"):
        frame(Scenario(), START_NS, -1, 1)
    assert records(Scenario(), START_NS, 1, 1) == []
