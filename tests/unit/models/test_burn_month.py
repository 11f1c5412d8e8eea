"""A month of one service over event time: every incident is told in time, and nothing else.

The rivals are counted on the same minutes: a static threshold on the error rate of five minutes,
and the four window pairs of the workbook as alerts of their own, as rule generators write them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from tailbudget.models.alert_state import AlertState, step
from tailbudget.models.burn import measure, reading
from tailbudget.models.slo_counts import SloCounts
from tailbudget.schemas.alerts import AlertStatus, Change
from tailbudget.schemas.objectives import Objective, Severity
from tailbudget.schemas.tally import Count, Tally

pytestmark = pytest.mark.thorough

MINUTE_NS = 60 * 10**9
DAY = 1440
DAYS = 34
"""Four days that fill the longest window, then thirty."""

SLO = Objective("chat", "latency", Fraction(99, 100), threshold_ms=500.0)


@dataclass(frozen=True)
class Incident:
    """A true fault.

    Attributes:
        begin: minute at which it begins.
        minutes: how long it lasts.
        share: share of requests that are bad meanwhile.
    """

    begin: int
    minutes: int
    share: float

    def due(self) -> float:
        """Return when the workbook's arithmetic has it told, in minutes after it began.

        Chapter 5: detection takes (1 - SLO) / error rate x window x burn rate; the first of the
        window pairs whose burn rate the fault reaches decides.
        """
        rate = self.share / 0.01
        pairs = ((14.4, 60), (6.0, 360), (3.0, DAY), (1.0, 3 * DAY))
        return min(factor / rate * window for factor, window in pairs if rate > factor)


OUTAGE = Incident(6 * DAY + 600, 25, 1.0)
PARTIAL = Incident(13 * DAY + 900, 60, 0.3)
NIGHT = Incident(21 * DAY + 180, 240, 0.12)
LEAK = Incident(26 * DAY, 5 * DAY, 0.022)
INCIDENTS = (OUTAGE, PARTIAL, NIGHT, LEAK)


def month(seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return requests and bad ones of each minute: a daily rhythm, 0.4 % bad, faults, deploys."""
    rng = np.random.default_rng(seed)
    minute = np.arange(DAYS * DAY)
    rhythm = 600 * (1.1 + np.sin(2 * np.pi * (minute / DAY - 0.3)))
    share = np.full(len(minute), 0.004)
    for deploy in range(5 * DAY + 700, DAYS * DAY, 3 * DAY):
        share[deploy : deploy + 2] = 0.08
    for one in INCIDENTS:
        share[one.begin : one.begin + one.minutes] = one.share
    total = rng.poisson(rhythm)
    return total, rng.binomial(total, share)


def last(counts: SloCounts, now_ns: int, seconds: int) -> Count:
    """Return the events of a window that ends at a time."""
    return counts.last(now_ns, seconds * 10**9)


def changes_of(total: NDArray[np.int64], bad: NDArray[np.int64]) -> list[Change]:
    """Return the changes of the alert, judged once a minute."""
    counts = SloCounts(MINUTE_NS, 3 * DAY + 1)
    state, found = AlertState(), []
    nothing = np.zeros(1, np.int64)
    for minute in range(len(total)):
        now = slice(minute, minute + 1)
        at = np.array([minute * MINUTE_NS])
        counts.add(Tally(MINUTE_NS, at, total[now], bad[now], nothing))
        now_ns = minute * MINUTE_NS + MINUTE_NS - 1
        burns = measure(SLO, partial(last, counts, now_ns), (minute + 1) * 60.0)
        state, change = step(state, reading(SLO, burns, 0.0), now_ns)
        if change is not None:
            found.append(change)
    return found


@pytest.fixture(scope="module")
def told() -> list[Change]:
    """The changes of one month."""
    return changes_of(*month(7))


def begins(changes: list[Change]) -> list[float]:
    """Return the minutes at which it fired."""
    fired = [c for c in changes if c.after is AlertStatus.FIRING != c.before]
    return [change.at_ns / MINUTE_NS for change in fired]


def test_every_incident_is_told_when_the_arithmetic_says(told: list[Change]) -> None:
    """The first notice comes by the workbook's detection time, give or take the daily rhythm."""
    for incident in INCIDENTS:
        first = next(at for at in begins(told) if at >= incident.begin)
        waited = first - incident.begin
        # Judged once a minute; the rhythm makes a share of a window more or less than one of time.
        assert waited <= 1.1 * incident.due() + 1, incident
        assert first <= incident.begin + incident.minutes, incident


def test_each_is_over_soon_after_its_end(told: list[Change]) -> None:
    """A page ends within its half hour, a ticket within a third of six; neither outlives that."""
    ends = [c.at_ns / MINUTE_NS for c in told if c.after is AlertStatus.RESOLVED]
    waits = [end - (one.begin + one.minutes) for end, one in zip(ends, INCIDENTS, strict=True)]
    assert all(0 < waited <= 31 for waited in waits[:3])
    assert 0 < waits[3] <= 120


def test_nothing_else_is_told(told: list[Change]) -> None:
    """No notice begins outside of an incident, and each incident begins once."""
    for at in begins(told):
        assert any(one.begin <= at <= one.begin + one.minutes for one in INCIDENTS), at
    assert len(begins(told)) == len(INCIDENTS)


def test_the_slow_leak_is_a_ticket_and_the_others_are_pages(told: list[Change]) -> None:
    """2.2 % bad for days is no reason to wake anybody; an outage is."""
    ends = [change for change in told if change.after is AlertStatus.RESOLVED]
    assert [change.severity for change in ends] == [Severity.PAGE] * 3 + [Severity.TICKET]


def test_rivals_say_more(told: list[Change]) -> None:
    """A static threshold cries at every deploy; an alert a window pair tells one fault thrice."""
    total, bad = month(7)
    said = static(total, bad)
    assert said > 3 * len(INCIDENTS)
    assert pairs(total, bad) > 1.5 * len(begins(told))


def static(total: NDArray[np.int64], bad: NDArray[np.int64]) -> int:
    """Return how often a share above 2 % of five minutes begins."""
    share = window(bad, 5) / np.maximum(window(total, 5), 1)
    return int((np.diff((share > 0.02).astype(int)) == 1).sum())


def pairs(total: NDArray[np.int64], bad: NDArray[np.int64]) -> int:
    """Return how often one of the four window pairs begins to fire, each by itself."""
    begun = 0
    for factor, long, short in ((14.4, 60, 5), (6, 360, 30), (3, DAY, 120), (1, 3 * DAY, 360)):
        fires = np.ones(len(total), np.bool_)
        for length in (long, short):
            fires &= window(bad, length) > factor * 0.01 * window(total, length)
        begun += int((np.diff(fires[3 * DAY :].astype(int)) == 1).sum())
    return begun


def window(values: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """Return the sum of each minute and those before it."""
    sums = np.concatenate([np.zeros(length, np.int64), np.cumsum(values)])
    return np.asarray(sums[length:] - sums[:-length])
