"""Load generators that wait for answers are told from open arrivals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from gathered import T0_NS, gathered

from tailbudget.models.cautions import load_cautions
from tailbudget.models.closed_loop import closed_loop
from tailbudget.models.evidence import Evidence

CASES = Path(__file__).parents[2] / "data" / "cases"


def _latency(rng: np.random.Generator, at_s: float | np.ndarray) -> np.ndarray:
    """Return latencies that are two and a half times as high every other minute."""
    shape = np.shape(at_s)
    return rng.lognormal(6, 0.3, shape) * np.where(np.sin(np.asarray(at_s) / 19) > 0, 2.5, 1.0)


def closed(callers: int, seed: int, n: int = 4_000) -> Evidence:
    """Return a log of callers that each wait for the answer."""
    rng = np.random.default_rng(seed)
    free = np.zeros(callers)
    at_s, total = np.zeros(n), np.zeros(n)
    for k in range(n):
        one = int(free.argmin())
        at_s[k] = free[one]
        total[k] = _latency(rng, at_s[k])
        free[one] += total[k] / 1e3
    return gathered({"timestamp": (T0_NS + at_s * 1e9).astype(np.int64), "total_ms": total})


def opened(rate: float, seed: int, n: int = 4_000, *, regular: bool = False) -> Evidence:
    """Return a log of arrivals that nobody holds back."""
    rng = np.random.default_rng(seed)
    at_s = np.arange(n) / rate if regular else np.cumsum(rng.exponential(1 / rate, n))
    total = _latency(rng, at_s)
    return gathered({"timestamp": (T0_NS + at_s * 1e9).astype(np.int64), "total_ms": total})


@pytest.mark.parametrize("callers", [1, 4, 16])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_callers_that_wait_are_counted(callers: int, seed: int) -> None:
    """The caution says how many there are and that percentiles are a lower bound."""
    said = load_cautions(closed(callers, seed))
    assert len(said) == 1
    assert said[0].startswith(f"closed-loop load: {callers} request")
    assert "percentiles are a lower bound: the load generator waits for answers" in said[0]


@pytest.mark.parametrize("rate", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("regular", [True, False])
def test_open_arrivals_are_not_cautioned(rate: float, *, regular: bool) -> None:
    """In flight moves with latency, whether arrivals are random or by the clock."""
    for seed in (1, 2, 3):
        assert load_cautions(opened(rate, seed, regular=regular)) == ()


def test_starts_that_follow_ends_are_seen_in_a_small_log() -> None:
    """Case 1 without its schedule: start k+1 is end k."""
    lines = (CASES / "01_admission_gate.jsonl").read_bytes().splitlines()
    rows = [orjson.loads(line) for line in lines]
    columns = {name: [row[name] for row in rows] for name in ("timestamp", "total_ms")}
    said = closed_loop(gathered(columns))
    assert said is not None
    assert said.startswith("closed-loop load: 1 request in flight")


def test_latency_from_the_schedule_is_no_lower_bound() -> None:
    """With the wait before admission in it, the total has what callers waited for."""
    columns = {"total_ms": [1_000.0] * 50}
    due_ns = [T0_NS + second * 1_000_000_000 for second in range(50)]
    assert closed_loop(gathered(columns | {"scheduled_ts": due_ns})) is None
    assert closed_loop(gathered({"total_ms": columns["total_ms"]})) is not None
    assert closed_loop(gathered({"total_ms": []})) is None
