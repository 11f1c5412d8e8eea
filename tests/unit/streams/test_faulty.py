"""Traffic with known faults: seeded, counterfactual, and labelled as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.streams.faulty.generate import FaultyTraffic, generate
from tailbudget.streams.faulty.records import UNMEASURED_MS, frame, lines
from tailbudget.streams.faulty.scenarios import (
    AFFECTED,
    COHORTS,
    COVARIATES,
    FAULTS,
    SHIFTS,
    STAGES,
    Fault,
    FaultScenario,
    scenario_of,
)
from tailbudget.streams.faulty.service import FaultyService
from tailbudget.streams.faulty.truth import COLD, FAULTY, SOUND

SMALL = FaultScenario(rate=10, duration_s=600, seed=3)


def stage_of(traffic: FaultyTraffic) -> np.ndarray:
    """Return the name of each row's stage."""
    result: np.ndarray = np.array(STAGES)[traffic.key // len(COHORTS)]
    return result


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_slows_its_stages_and_no_other(fault: Fault) -> None:
    """Rows differ from what they would have been in the affected stages only, while it acts."""
    traffic = generate(replace(SMALL, fault=fault, effect=1.5))
    changed = ~np.isclose(traffic.ms, traffic.sound_ms)
    assert set(stage_of(traffic)[changed].tolist()) == set(AFFECTED[fault])
    assert (traffic.ms >= traffic.sound_ms * (1 - 1e-12)).all()


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "none"])
def test_labels_follow_the_fault(fault: Fault) -> None:
    """Every faulty second lies in an onset's span, and no touched row in a sound second."""
    traffic = generate(replace(SMALL, fault=fault, effect=1.5))
    label = traffic.truth.label
    assert traffic.truth.onsets
    assert (label == FAULTY).any()
    touched = np.abs(np.log(traffic.ms / traffic.sound_ms)) > 0.02
    at = label[traffic.key[touched], traffic.done_s[touched].astype(int)]
    assert (at != SOUND).all()
    assert {onset.key // len(COHORTS) for onset in traffic.truth.onsets} <= {
        STAGES.index(stage) for stage in AFFECTED[fault]
    }


def test_the_mean_effect_is_the_one_asked_for() -> None:
    """A thermal fault of 50 % and a cache storm of 50 % lengthen their stage's mean by so much."""
    cases: tuple[tuple[Fault, str], ...] = (("thermal", "prefill"), ("cache_storm", "lookup"))
    for fault, stage in cases:
        traffic = generate(replace(SMALL, fault=fault, effect=1.5, rate=40))
        label = traffic.truth.label[traffic.key, traffic.done_s.astype(int)]
        rows = (stage_of(traffic) == stage) & (label == FAULTY)
        ratio = traffic.ms[rows].sum() / traffic.sound_ms[rows].sum()
        assert ratio == pytest.approx(1.5, rel=0.1)


def test_equal_scenarios_give_equal_traffic() -> None:
    """The seed decides everything, and another seed decides otherwise."""
    one, same, other = (generate(replace(SMALL, seed=seed)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.ms, same.ms)
    np.testing.assert_array_equal(one.covariate, same.covariate)
    assert len(one.ms) != len(other.ms)


def test_a_shift_changes_the_workload_and_is_no_fault() -> None:
    """Longer inputs lengthen prefill; the truth has no fault."""
    plain, shifted = (
        generate(replace(SMALL, shift=shift)) for shift in ("none", "long_inputs_all")
    )
    tokens = COVARIATES.index("input_tokens")
    assert shifted.covariate[:, tokens].mean() > 1.5 * plain.covariate[:, tokens].mean()
    assert (shifted.truth.label == SOUND).all()
    np.testing.assert_array_equal(shifted.ms, shifted.sound_ms)


def test_deploys_are_cold() -> None:
    """A deploy regression comes with two deploys, and the seconds after them are cold."""
    traffic = generate(replace(SMALL, fault="deploy_regression"))
    assert len(traffic.deploys_s) == 2
    for deploy in traffic.deploys_s:
        assert (traffic.truth.label[:, int(deploy) + 1 : int(deploy) + 60] == COLD).all()


def test_names_are_permanent() -> None:
    """A run is named by what it is; results of releases are compared by these names."""
    assert SMALL.name == "none, none, medium, terms, 10/s"
    named = FaultScenario("thermal", 1.3, "big_batches", "hard", "misfit", 40.0)
    assert named.name == "thermal x1.3, big_batches, hard, misfit, 40/s"


@given(
    st.builds(
        FaultScenario,
        fault=st.sampled_from(FAULTS),
        effect=st.sampled_from([1.05, 1.3, 3.0]),
        shift=st.sampled_from(SHIFTS),
        noise=st.sampled_from(["easy", "medium", "hard"]),
        family=st.sampled_from(["terms", "misfit"]),
        rate=st.sampled_from([0.5, 40.0, 1000.0]),
    )
)
def test_a_scenario_has_the_name_that_it_is_called_by(scenario: FaultScenario) -> None:
    """Its whole name leads back to it; without a fault there is no effect to name."""
    expected = scenario if scenario.fault != "none" else replace(scenario, effect=1.3)
    assert scenario_of(scenario.name) == expected


def test_a_short_name_leaves_the_rest_as_it_is() -> None:
    """In any order; what is no name is refused."""
    assert scenario_of("x2 leak") == FaultScenario("leak", 2.0)
    assert scenario_of("big_batches") == FaultScenario(shift="big_batches")
    with pytest.raises(ValueError, match="'thermals' is no fault"):
        scenario_of("thermals x2")


def test_records_are_the_traffic() -> None:
    """One a request that completed, with its stages, its shape and a total over them."""
    traffic = generate(replace(SMALL, fault="thermal", effect=2.0))
    table = frame(traffic, "chat", 1_000_000 * 10**9)
    rows = [orjson.loads(line) for line in lines(table)]
    decode = STAGES.index("decode")
    assert len(rows) == int((traffic.key // len(COHORTS) == decode).sum())
    assert len({row["request_id"] for row in rows}) == len(rows)
    assert rows == sorted(rows, key=lambda row: row["timestamp"])
    for row in rows[:50]:
        stages = [row[f"{name}_ms"] or 0.0 for name in STAGES]
        assert row["total_ms"] == pytest.approx(sum(stages) + UNMEASURED_MS, abs=0.01)
        assert row["route"] in COHORTS
        assert set(COVARIATES) <= set(row)
    at = traffic.key // len(COHORTS) == decode
    assert sum(row["decode_ms"] for row in rows) == pytest.approx(traffic.ms[at].sum(), rel=1e-4)


def test_a_service_goes_on_after_its_run() -> None:
    """Intervals are cut anywhere, runs follow each other, and what happens is said."""
    scenario = replace(SMALL, fault="deploy_regression", effect=1.5, duration_s=120.0)
    service, start_ns = FaultyService("chat", scenario), 1_000_000 * 10**9
    whole = service.records(start_ns, 0, 240)
    parts = [service.records(start_ns, at, at + 30) for at in range(0, 240, 30)]
    assert [line for part in parts for line in part] == whole
    ids = [orjson.loads(line)["request_id"] for line in whole]
    assert len(set(ids)) == len(ids)
    versions = [orjson.loads(line)["version"] for line in service.deploys(start_ns, 0, 240)]
    assert versions == ["v2", "v3", "v4", "v5"]
    thermal = FaultyService("chat", replace(scenario, fault="thermal", effect=2.0))
    said = thermal.happenings(start_ns, 0, 120)
    assert "thermal x2" in said[0]
    over = "prefill and decode as before: thermal is over"
    assert list(said[1:]) == ["prefill and decode slower: thermal", over] * 2
