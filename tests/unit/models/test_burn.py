"""Burn rates: rules that follow from the period, detection, minimum events, what is unknown."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from slo_events import Replay

from tailbudget.models.alert_state import AlertState, step
from tailbudget.models.burn import (
    largest_rate,
    measure,
    reading,
    rules_of,
    standard_rules,
)
from tailbudget.schemas.alerts import AlertStatus, ChangeReason, Condition, Reading
from tailbudget.schemas.objectives import BurnRule, Objective, Period, Severity
from tailbudget.schemas.tally import Count

HOUR_S = 3600
DAY_S = 86_400
SLO = Objective("chat", "latency", Fraction(99, 100), threshold_ms=500.0)


def read(counts: dict[int, Count], slo: Objective = SLO, silent_s: float | None = 0.0) -> Reading:
    """Return what the rules say of these windows; a window that is not given is empty."""
    return reading(slo, measure(slo, lambda s: counts.get(s, Count())), silent_s)


def test_the_rules_of_thirty_days_are_those_of_the_workbook() -> None:
    """Over 30 days: 14.4x over 1 h and 5 m, 6x over 6 h and 30 m, 3x over 1 d, 1x over 3 d."""
    assert [(r.factor, r.long_s, r.short_s) for r in rules_of(SLO)] == [
        (14.4, HOUR_S, 300),
        (6.0, 6 * HOUR_S, 1800),
        (3.0, DAY_S, 7200),
        (1.0, 3 * DAY_S, 6 * HOUR_S),
    ]
    severities = [rule.severity for rule in rules_of(SLO)]
    assert severities == [Severity.PAGE, Severity.PAGE, Severity.TICKET, Severity.TICKET]


@pytest.mark.parametrize("period", [Period(7, "d"), Period(28, "d"), Period(90, "d")])
def test_each_rule_spends_its_share_of_any_period(period: Period) -> None:
    """Factor x long window is 2, 5, 10 and 10 % of the period, whatever its length."""
    length_s = period.count * DAY_S
    spent = [r.factor * r.long_s / length_s for r in standard_rules(period, Fraction(1, 1000))]
    assert spent == pytest.approx([0.02, 0.05, 0.1, 0.1], rel=1e-9)


@pytest.mark.parametrize("target", ["0.5", "0.9", "0.95", "0.99", "0.999"])
def test_every_factor_can_be_reached(target: str) -> None:
    """No rule asks for more than all events bad can give, and each still spends its share."""
    allowed = 1 - Fraction(target)
    for rule, share in zip(
        standard_rules(Period(30, "d"), allowed), (0.02, 0.05, 0.1, 0.1), strict=True
    ):
        assert rule.factor < largest_rate(allowed)
        assert rule.factor * rule.long_s / (30 * DAY_S) == pytest.approx(share, rel=1e-3)
    assert largest_rate(Fraction(1, 10)) == 10


def test_ten_bad_minutes_fire_at_8_64_and_clear_at_14_3() -> None:
    """SLO 99 %, one request a second, minutes 0 to 10 all bad after a good hour, then good.

    Bad seconds over an hour exceed 14.4 % at 0.144 x 60 = 8.64 min; the bad ones of the last five
    minutes fall to 14.4 % of 300 at 10 + 5 - 0.72 = 14.28 min, and 5 % below it at 14.32.
    """
    replay = Replay(4 * DAY_S)
    replay.fill(-4 * DAY_S + 4000, 0)
    replay.fill(0, 600, bad=1)
    replay.fill(600, 1200)
    state, changes = AlertState(), []
    for second in range(1, 1200):
        judged = reading(SLO, measure(SLO, replay.at(second)), 0.0)
        state, change = step(state, judged, replay.now_ns)
        if change is not None:
            changes.append((change.after, change.severity, second / 60))
    (fired, severity, at), (cleared, _, until) = changes
    assert (fired, severity, cleared) == (AlertStatus.FIRING, Severity.PAGE, AlertStatus.RESOLVED)
    assert at == pytest.approx(8.64, abs=1 / 60)
    assert round(until, 1) == 14.3


@pytest.mark.parametrize("bad_share", [1.0, 0.5, 0.2, 0.15])
def test_detection_time_is_that_of_the_workbook(bad_share: float) -> None:
    """A steady error rate is paged after (1 - SLO) / error rate x window x factor.

    The formula is in Beyer et al., The Site Reliability Workbook, chapter 5, "Alert on Burn Rate".
    """
    replay = Replay(2 * HOUR_S)
    replay.fill(-HOUR_S, 0, total=100)
    page = replace(SLO, rules=(BurnRule(Severity.PAGE, 14.4, HOUR_S, 300),))
    expected_s = 0.01 / bad_share * HOUR_S * 14.4
    for second in range(1, HOUR_S + 1):
        replay.fill(second - 1, second, total=100, bad=round(100 * bad_share))
        if reading(page, measure(page, replay.at(second)), 0.0).condition is Condition.BAD:
            break
    assert second == pytest.approx(expected_s, abs=1.5)


def test_rates_are_weighted_by_events() -> None:
    """A bad quiet hour beside five busy good ones is a small share of the requests."""
    replay = Replay(7 * HOUR_S)
    replay.fill(0, 5 * HOUR_S, total=100)
    replay.fill(5 * HOUR_S, 6 * HOUR_S, total=1, bad=1)
    burns = measure(SLO, replay.at(6 * HOUR_S))
    six_hours = burns[1]
    assert six_hours.long == pytest.approx(100 * 3600 / (5 * 3600 * 100 + 3600))
    assert six_hours.burning is False  # the mean of the hours' rates would be 100 / 6


def test_one_failure_in_the_hour_pages_nobody() -> None:
    """Case 33: one request in the hour, and it failed: a rate of 100x, told and not paged."""
    one = dict.fromkeys((300, HOUR_S, 1800, 6 * HOUR_S, 7200, DAY_S, 3 * DAY_S), Count(1, 1))
    said = read(one)
    assert said.condition is Condition.GOOD
    assert "1 of 1 requests bad" in said.detail
    assert measure(SLO, lambda s: one[s])[0].long == pytest.approx(100)


def test_low_traffic_has_an_absolute_fallback() -> None:
    """Three bad requests of at most six fire although ten are wanted; two, or three of seven, not.

    The short window may be empty, for at six requests an hour most are.
    """

    def condition(total: int, bad: int) -> Condition:
        return read({HOUR_S: Count(total, bad)}).condition

    assert condition(6, 3) is Condition.BAD
    assert condition(2, 2) is not Condition.BAD
    assert condition(7, 3) is not Condition.BAD


def test_ten_bad_of_many_fire() -> None:
    """At ordinary traffic the tenth bad event fires, the ninth does not."""
    nine = {HOUR_S: Count(60, 9), 300: Count(10, 9)}
    ten = {HOUR_S: Count(60, 10), 300: Count(10, 9)}
    assert read(nine).condition is Condition.GOOD
    assert read(ten).condition is Condition.BAD


def test_the_most_urgent_rule_speaks() -> None:
    """Where a ticket and a page burn, there is one alert, and it is a page."""
    busy = Count(10_000, 2000)
    said = read(dict.fromkeys((300, HOUR_S, 7200, DAY_S), busy))
    assert said.severity is Severity.PAGE
    assert "14.4x allowed" in said.detail
    assert read(dict.fromkeys((7200, DAY_S), busy)).severity is Severity.TICKET


def test_the_short_window_ends_it_with_hysteresis() -> None:
    """Between 95 % and 100 % of the factor nothing begins and nothing ends."""
    long = Count(36_000, 9_000)

    def condition(short_bad: int) -> Condition:
        return read({HOUR_S: long, 300: Count(1000, short_bad)}).condition

    assert [condition(n) for n in (145, 144, 137, 136)] == [
        Condition.BAD,
        Condition.HOLD,
        Condition.HOLD,
        Condition.GOOD,
    ]


def test_a_young_service_burns_no_whole_budget() -> None:
    """In its first hour forty bad seconds are no tenth of a budget; ten bad minutes are a page.

    The time before counts as good, so that the first incident is found as late as a later one.
    """

    def condition(age_s: int, bad: int) -> Condition:
        return reading(SLO, measure(SLO, lambda _: Count(age_s, bad), age_s), 0.0).condition

    assert reading(SLO, measure(SLO, lambda _: Count(3600, 41)), 0.0).severity is Severity.TICKET
    assert condition(3600, 41) is Condition.GOOD
    assert condition(518, 518) is not Condition.BAD
    assert condition(519, 519) is Condition.BAD


def test_silence_is_no_data() -> None:
    """Ten minutes without an event are neither good nor bad, and so is a service never seen."""
    burning = {HOUR_S: Count(100, 100), 300: Count(100, 100)}
    assert read(burning, silent_s=599).condition is Condition.BAD
    assert read(burning, silent_s=600).condition is Condition.NO_DATA
    assert read({}, silent_s=None).condition is Condition.NO_DATA


def test_unknown_events_decide_nothing() -> None:
    """Where events that nobody can judge could tip the rule, it says so, and only there."""
    unsure = Count(100, 10, unknown=20)
    assert read({HOUR_S: unsure, 300: unsure}).condition is Condition.UNMEASURABLE
    for sure, condition in (
        (Count(100, 90, 5), Condition.BAD),
        (Count(1000, 3, 5), Condition.GOOD),
    ):
        assert read({HOUR_S: sure, 300: sure}).condition is condition


def test_frozen_while_it_cannot_be_measured() -> None:
    """A firing alert without a way to judge it is frozen, and goes on where it was."""
    state, fired = step(AlertState(), Reading(Condition.BAD, Severity.PAGE), 0)
    state, froze = step(state, Reading(Condition.UNMEASURABLE, detail="20 events"), 1)
    state, back = step(state, Reading(Condition.HOLD), 2)
    assert fired is not None
    assert froze is not None
    assert back is not None
    assert (froze.after, froze.reason) == (AlertStatus.NO_DATA, ChangeReason.UNMEASURABLE)
    assert (back.after, back.reason) == (AlertStatus.FIRING, ChangeReason.DATA_BACK)
    assert back.began_ns == fired.began_ns
