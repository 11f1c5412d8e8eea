"""Error budgets: what is left, what corrections change, and when it will be spent."""

from __future__ import annotations

from fractions import Fraction

import pytest
from slo_events import SECOND_NS, T0_NS, tally_of

from tailbudget.models.budget import budgets, cost_pct
from tailbudget.models.slo_window import Span
from tailbudget.schemas.objectives import Correction, Objective, Period

MINUTE_NS = 60 * SECOND_NS
DAY_S = 86_400
SLO = Objective("chat", "latency", Fraction(99, 100), 500.0, period=Period(30, "d"))
SLICED = Objective(
    "chat", "slices", Fraction(99, 100), 500.0, period=Period(1, "d"), slice_s=60,
    slice_target=Fraction(95, 100),
)  # fmt: skip


def past(days: int = 31) -> list[tuple[int, int, int]]:
    """Return one request long ago, so that the whole period is covered."""
    return [(-days * DAY_S, 1, 0)]


def minutes(first: int, last: int, *, total: int = 100, bad: int = 0) -> list[tuple[int, int, int]]:
    """Return rows of (second, total, bad), one a minute."""
    return [(m * 60, total, bad) for m in range(first, last)]


def test_half_of_the_budget_is_left() -> None:
    """Of 100,000 requests 1,000 may be bad; 500 were, and now all is good: it lasts."""
    rows = [*past(), *minutes(0, 5, bad=100), *minutes(5, 1000)]
    now_ns = T0_NS + 1000 * MINUTE_NS
    budget = budgets(tally_of(rows, slice_s=60), SLO, now_ns).measured
    assert (budget.total, budget.bad, budget.allowed) == (100_000, 500, 1000)
    assert (budget.left_pct, budget.good_pct) == (50, 99.5)
    assert (budget.burn_rate, budget.exhausted_ns) == (0, None)


def test_nothing_is_known_without_events() -> None:
    """An empty period has no percentage, and nothing that will be spent."""
    budget = budgets(tally_of(()), SLO, T0_NS).measured
    assert (budget.left_pct, budget.good_pct, budget.burn_rate) == (None, None, None)
    assert budget.exhausted_ns is None


def test_when_it_will_be_spent_at_this_rate() -> None:
    """3 % bad where 1 % may be: allowed 0.01 (1000 + t) = 0.03 t + spent, in minutes.

    999 good minutes, then an hour of 3 %: of 100 a minute 3 are bad, 2 beyond the share of new
    ones. 990 + 60 minutes allow 1,050, 180 are spent, and 870 / 2 is 435 minutes ahead.
    """
    rows = [*past(), *minutes(0, 990), *minutes(990, 1050, bad=3)]
    now_ns = T0_NS + 1050 * MINUTE_NS
    budget = budgets(tally_of(rows, slice_s=60), SLO, now_ns).measured
    assert budget.burn_rate == pytest.approx(3)
    assert budget.exhausted_ns == pytest.approx(now_ns + 435 * MINUTE_NS, abs=2 * SECOND_NS)


def test_a_young_service_has_the_budget_of_a_whole_period() -> None:
    """After an hour of 3 % bad its 30 days allow 43,200 bad requests, and last for ten days.

    180 are spent, and 3 more a minute reach 43,200 after 14,340 minutes.
    """
    now_ns = T0_NS + 60 * MINUTE_NS
    budget = budgets(tally_of(minutes(0, 60, bad=3), slice_s=60), SLO, now_ns).measured
    assert budget.allowed == pytest.approx(43_200)
    assert budget.left_pct == pytest.approx(100 * (1 - 180 / 43_200))
    assert budget.exhausted_ns == pytest.approx(now_ns + 14_340 * MINUTE_NS, abs=2 * SECOND_NS)


def test_a_rolling_period_lets_old_failures_go() -> None:
    """Old failures leave before the budget is spent, where a plain division says 18 days.

    70 % of 30 days' budget is spent, most of it on the first day; half of the allowed rate now.
    """
    day = 1440
    rows = [
        *minutes(0, day, bad=20),
        *minutes(day, 29 * day),
        *minutes(29 * day, 30 * day, total=200, bad=1),
    ]
    now_ns = T0_NS + 30 * day * MINUTE_NS - MINUTE_NS // 2
    rolling = budgets(tally_of(rows, slice_s=60), SLO, now_ns).measured
    assert rolling.burn_rate == pytest.approx(0.5)
    assert rolling.left_pct == pytest.approx(100 * (1 - 21 / 31), abs=0.1)
    assert rolling.exhausted_ns is None


def test_a_calendar_period_starts_anew() -> None:
    """What was spent before the first of the month does not count after it."""
    month = Objective(
        "chat", "m", Fraction(99, 100), 500.0, period=Period(1, "M", "2026-01-01T00:00:00")
    )
    counted = tally_of([(0, 100, 50), (40 * DAY_S, 100, 1)], slice_s=60)
    assert budgets(counted, month, T0_NS + DAY_S * SECOND_NS).measured.bad == 50
    later = budgets(counted, month, T0_NS + 41 * DAY_S * SECOND_NS).measured
    assert (later.total, later.bad) == (100, 1)
    assert later.exhausted_ns is None
    # On 12 April at 10:00, 11.4 of 30 days have brought 100 requests.
    assert later.covered_pct == pytest.approx(100 * (11 + 10 / 24) / 30)
    assert later.allowed == pytest.approx(30 / (11 + 10 / 24))


def test_what_is_spent_is_spent_now() -> None:
    """More bad requests than allowed: less than nothing is left, and it is spent already."""
    now_ns = T0_NS + 60 * MINUTE_NS
    budget = budgets(tally_of([*past(), *minutes(0, 60, bad=3)], slice_s=60), SLO, now_ns).measured
    assert budget.left_pct == pytest.approx(-200)
    assert budget.exhausted_ns == now_ns


def test_slices_have_a_budget_of_time() -> None:
    """Of the 1,440 minutes of a day 14.4 may be bad; one with 6 % bad requests is."""
    rows = [*minutes(0, 10, bad=6), *minutes(10, 60, bad=5)]
    now_ns = T0_NS + 60 * MINUTE_NS
    budget = budgets(tally_of(rows, slice_s=60), SLICED, now_ns).measured
    assert (budget.unit, budget.total, budget.bad) == ("slices", 60, 10)
    assert budget.allowed == pytest.approx(14.4)
    assert budget.left_pct == pytest.approx(100 * (1 - 10 / 14.4))


def test_an_open_slice_does_not_count_yet() -> None:
    """A minute that has just begun may still turn out good."""
    rows = [*minutes(0, 10), (600, 1, 1)]
    budget = budgets(tally_of(rows, slice_s=60), SLICED, T0_NS + 601 * SECOND_NS).measured
    assert (budget.total, budget.bad) == (10, 0)


def test_maintenance_is_shown_beside_what_was_measured() -> None:
    """Both figures are there: with the maintenance, and without it."""
    rows = [*past(), *minutes(0, 50), *minutes(50, 60, bad=100), *minutes(60, 100)]
    upgrade = Correction(T0_NS + 50 * MINUTE_NS, T0_NS + 60 * MINUTE_NS, "upgrade")
    long_ago = Correction(0, 1, "long ago")
    said = budgets(tally_of(rows, slice_s=60), SLO, T0_NS + 100 * MINUTE_NS, (upgrade, long_ago))
    assert said.measured.left_pct == pytest.approx(-900)
    assert said.corrected is not None
    assert (said.corrected.total, said.corrected.left_pct) == (9000, 100)
    assert said.excluded == ("upgrade: 10 slices",)
    assert budgets(tally_of(rows, slice_s=60), SLO, T0_NS + 1, ()).corrected is None


def test_what_an_incident_cost() -> None:
    """Ten bad minutes of a hundred spend ten times the budget of one per cent."""
    rows = [*past(), *minutes(0, 50), *minutes(50, 60, bad=100), *minutes(60, 100)]
    incident = Span(T0_NS + 50 * MINUTE_NS, T0_NS + 60 * MINUTE_NS)
    counted = tally_of(rows, slice_s=60)
    assert cost_pct(counted, SLO, incident, T0_NS + 100 * MINUTE_NS) == pytest.approx(1000)
    assert cost_pct(tally_of(()), SLO, incident, T0_NS) is None
