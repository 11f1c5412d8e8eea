"""The SLO that a profile supports, its division over the stages, latency against load."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from gathered import gathered
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.evidence import Evidence
from tailbudget.models.rank_interval import lower_rank, upper_rank
from tailbudget.models.sizing import (
    MARGIN_PCT,
    floor_ms,
    load_curve,
    stage_budgets,
    supported_slo,
)
from tailbudget.models.slo_proposal import proposal
from tailbudget.schemas.sections import StageRole, StageRow
from tailbudget.schemas.slo import QUANTILES

P99 = Fraction(99, 100)


def role(stage: str, what: StageRole) -> StageRow:
    return StageRow(stage, 0, None, None, None, None, None, None, None, what)


def at_most(k: int, n: int, p: float) -> float:
    """Return the exact chance of `k` or fewer hits."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 400), q=st.sampled_from([Fraction(1, 2), Fraction(19, 20), P99]))
def test_ranks_enclose_the_quantile_with_little_to_spare(n: int, q: Fraction) -> None:
    """Each end is missed with at most 2.5 %, and the rank inside of it with more than 2 %."""
    p, upper, lower = float(q), upper_rank(n, q), lower_rank(n, q)
    if upper is None:
        assert 1 - at_most(n - 1, n, p) > 0.025
    else:
        assert 1 - at_most(upper - 1, n, p) <= 0.025 + 1e-12
        assert 1 - at_most(upper - 2, n, p) > 0.02
    if lower is None:
        assert at_most(0, n, p) > 0.02
    else:
        assert at_most(lower - 1, n, p) <= 0.025 + 1e-12
        assert at_most(lower, n, p) > 0.02


def test_the_interval_covers_the_true_percentile() -> None:
    """The upper end falls below the true p99 in 2.5 % of 2,000 simulated profiles, or fewer."""
    rng, rank, runs, n = np.random.default_rng(12), upper_rank(1_500, P99), 2_000, 1_500
    assert rank is not None
    true = math.exp(4 + 0.7 * NormalDist().inv_cdf(0.99))
    below = sum(
        np.partition(rng.lognormal(4, 0.7, n), rank - 1)[rank - 1] < true for _ in range(runs)
    )
    # Three standard errors of 2,000 runs.
    assert 0.005 < below / runs <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / runs)


def test_a_supported_target_holds_for_the_service_behind_the_profile() -> None:
    """What 60 simulated profiles support, the true percentiles meet but for what chance allows.

    Six or more misses in 60 at 2.5 % each have a chance of 0.3 %.
    """
    rng = np.random.default_rng(19)
    true = [math.exp(4 + 0.7 * NormalDist().inv_cdf(float(q))) for q in QUANTILES.values()]
    missed = np.zeros(3)
    for _ in range(60):
        rows = supported_slo(gathered({"total_ms": rng.lognormal(4, 0.7, 1_200)}))
        missed += [
            row.supported_ms is None or row.supported_ms < ms
            for row, ms in zip(rows, true, strict=True)
        ]
    assert missed.max() < 6


def test_supported_is_the_upper_end_with_the_margin_on_top() -> None:
    """The value at the upper rank, a sketch's error apart, and 11 % that keep it out of risk."""
    total = np.random.default_rng(13).lognormal(4, 0.7, 3_000)
    rows = {row.percentile: row for row in supported_slo(gathered({"total_ms": total}))}
    ordered = np.sort(total)
    for name, q in (("p50", Fraction(1, 2)), ("p95", Fraction(19, 20)), ("p99", P99)):
        rank = upper_rank(3_000, q)
        assert rank is not None
        wanted = ordered[rank - 1] / 0.9
        assert rows[name].supported_ms == pytest.approx(wanted, rel=1 / 128)
        assert rows[name].measured_ms == pytest.approx(
            ordered[math.ceil(q * 3_000) - 1], rel=1 / 128
        )
        assert rows[name].n == 3_000
        assert rows[name].margin_pct == MARGIN_PCT == pytest.approx(100 / 9)
        assert rows[name].confidence_pct == 95


def test_failures_are_slower_than_any_target() -> None:
    """With 0.8 % failures the interval of p99 reaches into them: no target holds."""
    n = 3_000
    status = ["error" if i % 125 == 0 else "ok" for i in range(n)]
    columns = {"total_ms": np.random.default_rng(14).lognormal(4, 0.7, n), "status": status}
    rows = {row.percentile: row for row in supported_slo(gathered(columns))}
    assert rows["p99"].supported_ms is None
    assert rows["p99"].measured_ms is not None
    assert rows["p95"].supported_ms is not None


def test_too_few_requests_support_no_target() -> None:
    """500 requests say something of p50 and p95, and nothing of p99; none say nothing."""
    rows = supported_slo(gathered({"total_ms": np.linspace(10, 500, 500)}))
    assert [row.supported_ms is None for row in rows] == [False, False, True]
    assert [row.supported_ms for row in supported_slo(gathered({"total_ms": []}))] == [None] * 3


def test_records_that_stand_for_ten_widen_the_interval() -> None:
    """4,000 records of weight 10 tell as much as 4,000 requests, not as 40,000."""
    total = np.random.default_rng(15).lognormal(4, 0.7, 4_000)
    plain, weighted = (
        supported_slo(gathered({"total_ms": total, "weight": [weight] * 4_000}))[2].supported_ms
        for weight in (1, 10)
    )
    assert plain == pytest.approx(weighted, rel=0.02)


def staged(n: int = 2_000) -> Evidence:
    rng = np.random.default_rng(16)
    a, b, c = rng.lognormal(3, 0.8, n), rng.gamma(4, 5, n), rng.gamma(2, 2, n)
    columns = {"total_ms": a + b + c + 4, "a_ms": a, "b_ms": b, "c_ms": c, "all_ms": a + b}
    return gathered(columns)


def test_budgets_add_up_to_the_target_by_the_slow_means() -> None:
    """Each stage's part of 300 ms is in proportion to its mean over the slow band."""
    evidence = staged()
    got = stage_budgets(evidence, 300, [role("all", StageRole.CONTAINER)])
    assert {budget.stage for budget in got} == {"a", "b", "c", "unattributed"}
    assert sum(budget.p99_ms for budget in got) == pytest.approx(300)
    assert sum(budget.share_pct for budget in got) == pytest.approx(100)
    assert got[0].stage == "a"
    assert [budget.p99_ms for budget in got] == sorted((b.p99_ms for b in got), reverse=True)


def test_parallel_stages_have_one_budget_together() -> None:
    """What runs at the same time may use the same milliseconds."""
    n = 2_000
    rng = np.random.default_rng(17)
    a, b, c = rng.gamma(4, 10, n), rng.gamma(4, 10, n), rng.gamma(4, 5, n)
    evidence = gathered({"total_ms": np.maximum(a, b) + c, "a_ms": a, "b_ms": b, "c_ms": c})
    roles = [role("a", StageRole.PARALLEL), role("b", StageRole.PARALLEL)]
    got = stage_budgets(evidence, 100, roles)
    assert got[0].stage == "a || b"
    assert {budget.stage for budget in got} <= {"a || b", "c", "unattributed"}
    assert sum(budget.p99_ms for budget in got) == pytest.approx(100)


def test_the_floor_is_the_sum_of_the_medians() -> None:
    """Below the medians of the stages no target can be; containers are not added."""
    evidence = staged()
    n = 2_000
    rng = np.random.default_rng(16)
    a, b, c = rng.lognormal(3, 0.8, n), rng.gamma(4, 5, n), rng.gamma(2, 2, n)
    wanted = float(np.median(a) + np.median(b) + np.median(c))
    assert floor_ms(evidence, ("all",)) == pytest.approx(wanted, rel=0.02)
    assert floor_ms(gathered({"total_ms": [1.0] * 100})) is None


def loaded(slowdown: float, peak: float, n_slots: int = 240) -> Evidence:
    """Return ten-second slots between one and `peak` times 20 requests a second."""
    rng = np.random.default_rng(18)
    stamps, total = [], []
    for slot in range(n_slots):
        load = 1 + (peak - 1) * (0.5 - 0.5 * math.cos(2 * math.pi * slot / 60))
        count = rng.poisson(200 * load)
        stamps += (slot * 10 + np.sort(rng.random(count)) * 10).tolist()
        total += (rng.lognormal(3, 0.3, count) * (1 + slowdown * (load - 1))).tolist()
    start = 1_772_445_600
    return gathered({"total_ms": total, "timestamp": [start + s for s in stamps]})


def test_latency_is_drawn_against_load_where_load_varied() -> None:
    """Ten levels, ascending; requests in flight are rate times latency (Little's law)."""
    curve = load_curve(loaded(1.0, 3.0))
    assert len(curve) == 10
    assert [p.load_rps for p in curve] == sorted(p.load_rps for p in curve)
    p99 = [point.p99_ms for point in curve if point.p99_ms is not None]
    assert len(p99) == 10
    assert p99[-1] > 2 * p99[0]
    busiest = curve[-1]
    mean_s = 0.001 * 3 * math.exp(3 + 0.3**2 / 2)
    assert busiest.in_flight == pytest.approx(60 * mean_s, rel=0.15)


def test_steady_load_draws_no_curve() -> None:
    """What chance makes of a steady load is no variation."""
    assert load_curve(loaded(1.0, 1.0)) == ()
    assert load_curve(gathered({"total_ms": [5.0] * 3_000})) == ()


def test_a_proposal_rounds_up_and_divides() -> None:
    """Targets are round numbers above what the profile supports; the stages share the p99."""
    got = proposal(staged(3_000), [role("all", StageRole.CONTAINER)])
    for row, target in zip(
        got.supported, (got.slo.p50_ms, got.slo.p95_ms, got.slo.p99_ms), strict=True
    ):
        assert target is not None
        assert row.supported_ms is not None
        assert row.supported_ms <= target < 1.11 * row.supported_ms
        assert float(f"{target:.2g}") == target
    assert sum(budget.p99_ms for budget in got.budgets) == pytest.approx(got.slo.p99_ms)
    assert got.floor_ms is not None
    assert got.slo.p99_ms is not None
    assert got.floor_ms < got.slo.p99_ms
    assert got.failed_pct == 0
    assert any("Load did not vary" in note for note in got.notes)


def test_a_proposal_of_too_few_requests_says_what_it_takes() -> None:
    """No target is made up: the note says how many requests a percentile takes."""
    got = proposal(gathered({"total_ms": np.linspace(10, 500, 500)}))
    assert got.slo.p99_ms is None
    assert got.budgets == ()
    assert "p99 takes 1,000 requests; 500 were measured." in got.notes
