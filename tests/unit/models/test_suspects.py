"""Cold starts that no event announced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gathered import T0_NS, gathered

from tailbudget.models.cold_start import cold_start
from tailbudget.models.evidence import Evidence
from tailbudget.models.suspects import suspects
from tailbudget.schemas.sections import ColdWindow

S = 1_000_000_000


def log(
    at_s: Sequence[float] | np.ndarray,
    total_ms: Sequence[float] | np.ndarray,
    replica: Sequence[str] | np.ndarray | None = None,
    cold_windows: tuple[ColdWindow, ...] | None = None,
) -> Evidence:
    """Return the evidence of requests at given seconds."""
    stamps = (T0_NS + np.asarray(at_s) * S).astype(np.int64)
    columns: dict[str, Any] = {"timestamp": stamps, "total_ms": total_ms}
    if replica is not None:
        columns["replica"] = replica
    return gathered(columns, cohort_dims=("replica",), cold_windows=cold_windows)


@pytest.mark.parametrize("n", [20, 60, 600])
def test_a_replica_that_wakes_after_a_silence_is_told_once(n: int) -> None:
    """Case 10: one unmarked cold start, named by replica and by idle gap."""
    begin = n - 1 + 1_200
    at_s = [*range(n), *range(begin, begin + n)]
    total = [100.0] * n + [14_000.0] + [100.0] * (n - 1)
    said = cold_start(log(at_s, total, ["p1"] * n + ["p2"] * n), None)
    assert len(said.suspected) == 1
    found = said.suspected[0]
    assert (found.sign, found.instance, found.idle_s, found.n) == ("idle_gap", "p2", 1_200.0, 1)
    assert found.worst_ms == 14_000
    assert abs(found.usual_ms / 100 - 1) < 1 / 128
    minute, second = divmod(begin, 60)
    assert found.at == f"2026-03-02T10:{minute:02}:{second:02}.000Z"
    assert "1 suspected start" in said.note


def two_replicas(seed: int, n: int = 3_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return seconds, latencies and replicas; the second joins at a third of the span."""
    rng = np.random.default_rng(seed)
    at_s = np.sort(rng.uniform(0, 600, n))
    replica = np.where((at_s > 200) & (rng.random(n) < 0.5), "b", "a")
    return at_s, rng.lognormal(4.6, 0.4, n), replica


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_replica_first_seen_and_slow_is_suspected(seed: int) -> None:
    """Its wave is counted, and lasts as long as its requests are slow."""
    at_s, total, replica = two_replicas(seed)
    wave = (replica == "b") & (at_s < 225)
    total[wave] *= 12
    found = suspects(log(at_s, total, replica))
    assert [(one.sign, one.instance, one.idle_s) for one in found] == [
        ("replica_first_seen", "b", None)
    ]
    assert 0.8 * wave.sum() <= found[0].n <= wave.sum() + 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_slow_everywhere_or_for_ever_is_no_start(seed: int) -> None:
    """An incident of all replicas, a replica that stays slow, and steady traffic are none."""
    at_s, total, replica = two_replicas(seed)
    incident = (at_s > 200) & (at_s < 225)
    for slow in (incident, replica == "b", np.zeros(len(at_s), np.bool_)):
        assert suspects(log(at_s, np.where(slow, 12 * total, total), replica)) == ()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_opening_of_the_log_may_be_a_wave(seed: int) -> None:
    """Without replicas it is named by its sign alone."""
    rng = np.random.default_rng(seed)
    at_s = np.sort(rng.uniform(0, 600, 3_000))
    total = rng.lognormal(4.6, 0.4, 3_000) * np.where(at_s < 15, 12, 1)
    found = suspects(log(at_s, total))
    assert [(one.sign, one.instance) for one in found] == [("opening_wave", "")]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_silence_that_is_usual_is_no_gap(seed: int) -> None:
    """A service with a request in five minutes is not idle in between."""
    rng = np.random.default_rng(seed)
    at_s = np.cumsum(rng.exponential(300, 400))
    total = rng.lognormal(4.6, 0.3, 400)
    assert [one for one in suspects(log(at_s, total)) if one.sign == "idle_gap"] == []


def test_a_start_within_a_known_window_is_not_suspected() -> None:
    """An event announced it."""
    at_s, total, replica = two_replicas(1)
    total[(replica == "b") & (at_s < 225)] *= 12
    window = ColdWindow(T0_NS + 190 * S, T0_NS + 490 * S, "v2", "scale_up")
    assert suspects(log(at_s, total, replica, (window,))) == ()


def test_nothing_is_suspected_of_nothing() -> None:
    """Empty logs and logs of one request have no start."""
    assert suspects(log([], [])) == ()
    assert suspects(log([0.0], [5.0], ["a"])) == ()
