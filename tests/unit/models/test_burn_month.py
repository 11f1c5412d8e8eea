"""A month of one service over event time: every incident is told in time, and nothing else.

The rivals are judged on the same minutes; `tests/bench/alert_month.py` prints all of them.
"""

from __future__ import annotations

import pytest
from burn_month import INCIDENTS, WAYS, Counts, Said, changes_of, month, of_changes

from tailbudget.schemas.alerts import AlertStatus, Change
from tailbudget.schemas.objectives import Severity

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def minutes() -> tuple[Counts, Counts]:
    """Requests and bad ones of each minute of one month."""
    return month(7)


@pytest.fixture(scope="module")
def changes(minutes: tuple[Counts, Counts]) -> list[Change]:
    """The changes of our alert in that month."""
    return changes_of(*minutes)


@pytest.fixture(scope="module")
def said(changes: list[Change]) -> Said:
    """What is told of them."""
    return of_changes(changes)


def test_every_incident_is_told_when_the_arithmetic_says(said: Said) -> None:
    """The first notice comes by the workbook's detection time, give or take the daily rhythm."""
    for incident in INCIDENTS:
        waited = said.waited(incident)
        assert waited is not None, incident
        # Judged once a minute; the rhythm makes a share of a window more or less than one of time.
        assert waited <= 1.1 * incident.due() + 1, incident


def test_each_is_over_soon_after_its_end(said: Said) -> None:
    """A page ends within its half hour, a ticket within a third of six; neither outlives that."""
    waits = [end + 1 - one.end for end, one in zip(said.ends, INCIDENTS, strict=True)]
    assert all(0 < waited <= 31 for waited in waits[:3])
    assert 0 < waits[3] <= 120


def test_nothing_else_is_told(said: Said) -> None:
    """No notice begins outside of an incident, and each is told once, as is its end."""
    assert said.false() == 0
    assert [said.of(one) for one in INCIDENTS] == [1] * len(INCIDENTS)
    assert said.messages == 2 * len(INCIDENTS)


def test_the_slow_leak_is_a_ticket_and_the_others_are_pages(changes: list[Change]) -> None:
    """2.2 % bad for days is no reason to wake anybody; an outage is."""
    ends = [change for change in changes if change.after is AlertStatus.RESOLVED]
    assert [change.severity for change in ends] == [Severity.PAGE] * 3 + [Severity.TICKET]


def test_rivals_say_more(minutes: tuple[Counts, Counts], said: Said) -> None:
    """A static threshold cries in quiet nights and at deploys; rules tell one fault twice."""
    static = WAYS["static P99 > 500 ms"](*minutes)
    sloth = WAYS["Sloth's rules"](*minutes)
    assert static.false() > 10 * len(INCIDENTS)
    assert sloth.messages > said.messages
    for incident in INCIDENTS:
        assert sloth.waited(incident) == said.waited(incident)
