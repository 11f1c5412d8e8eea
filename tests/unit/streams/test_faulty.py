"""Traffic with known faults: seeded, counterfactual, and labelled as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tailbudget.streams.faulty.generate import FaultyTraffic, generate
from tailbudget.streams.faulty.scenarios import (
    AFFECTED,
    COHORTS,
    COVARIATES,
    FAULTS,
    STAGES,
    Fault,
    FaultScenario,
)
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
