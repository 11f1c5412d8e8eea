"""A month of one service, its faults, and what three ways of alerting say of it.

The same minutes go through ours, through a static threshold on the P99 of five minutes, and
through the two alerts that Sloth generates from the workbook's four window pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from alerts import BURN
from numpy.typing import NDArray

from tailbudget.models.alert_state import AlertState, step
from tailbudget.models.burn import measure, reading
from tailbudget.models.slo_counts import SloCounts
from tailbudget.schemas.alerts import AlertStatus, Change
from tailbudget.schemas.objectives import Objective
from tailbudget.schemas.tally import Count, Tally
from tailbudget.streams.delivery.told import Decision, Told

Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

MINUTE_NS: Final = 60 * 10**9
DAY: Final = 1440
FILLING: Final = 4
"""Days that fill the longest window, before those that are looked at."""
DAYS: Final = FILLING + 30

SLO: Final = Objective("chat", "latency", Fraction(99, 100), threshold_ms=500.0)
PAIRS: Final = ((14.4, 60, 5), (6.0, 360, 30), (3.0, DAY, 120), (1.0, 3 * DAY, 360))
"""Burn rate, long and short window in minutes: the Workbook, chapter 5, and Sloth's 30 days."""


@dataclass(frozen=True)
class Incident:
    """A true fault.

    Attributes:
        name: for people.
        begin: minute at which it begins.
        minutes: how long it lasts.
        share: share of requests that are bad meanwhile.
    """

    name: str
    begin: int
    minutes: int
    share: float

    @property
    def end(self) -> int:
        """The first minute after it."""
        return self.begin + self.minutes

    def due(self) -> float:
        """Return when the workbook's arithmetic has it told, in minutes after it began.

        Chapter 5: detection takes (1 - SLO) / error rate x window x burn rate; the first of the
        window pairs whose burn rate the fault reaches decides.
        """
        rate = self.share / 0.01
        return min(factor / rate * window for factor, window, _ in PAIRS if rate > factor)


OUTAGE = Incident("outage, all bad for 25 min", 6 * DAY + 600, 25, 1.0)
PARTIAL = Incident("30 % bad for 1 h", 13 * DAY + 900, 60, 0.3)
NIGHT = Incident("12 % bad for 4 h at night", 21 * DAY + 180, 240, 0.12)
LEAK = Incident("slow leak, 2.2 % bad for 5 d", 26 * DAY, 5 * DAY, 0.022)
INCIDENTS: Final = (OUTAGE, PARTIAL, NIGHT, LEAK)


def month(seed: int) -> tuple[Counts, Counts]:
    """Return requests and those beyond 500 ms or failed, of each minute.

    A daily rhythm with 0.4 % bad; deploys with 8 % for two minutes; a day of thrice the traffic
    and afternoons of longer prompts with 0.8 % bad, all within the budget; and the faults.
    """
    rng = np.random.default_rng(seed)
    minute = np.arange(DAYS * DAY)
    rhythm = 600 * (1.1 + np.sin(2 * np.pi * (minute / DAY - 0.3)))
    rhythm[10 * DAY : 11 * DAY] *= 3
    share = np.full(len(minute), 0.004)
    for day in (9, 16, 18):
        share[day * DAY + 780 : day * DAY + 1140] = 0.008
    for deploy in range(5 * DAY + 700, DAYS * DAY, 3 * DAY):
        share[deploy : deploy + 2] = 0.08
    for one in INCIDENTS:
        share[one.begin : one.end] = one.share
    total = rng.poisson(rhythm)
    return total, rng.binomial(total, share)


def changes_of(total: Counts, bad: Counts) -> list[Change]:
    """Return the changes of our alert, judged once a minute."""
    counts = SloCounts(MINUTE_NS, 3 * DAY + 1)
    state, found = AlertState(), []
    nothing = np.zeros(1, np.int64)
    for minute in range(len(total)):
        now = slice(minute, minute + 1)
        at = np.array([minute * MINUTE_NS])
        counts.add(Tally(MINUTE_NS, at, total[now], bad[now], nothing))
        now_ns = minute * MINUTE_NS + MINUTE_NS - 1
        burns = measure(SLO, partial(_last, counts, now_ns), (minute + 1) * 60.0)
        state, change = step(state, reading(SLO, burns, 0.0), now_ns)
        if change is not None:
            found.append(change)
    return found


def static(total: Counts, bad: Counts) -> list[Flags]:
    """Return when the P99 of five minutes is beyond 500 ms: when over 1 % of requests are."""
    return [window(bad, 5) * 100 > window(total, 5)]


def sloth(total: Counts, bad: Counts) -> list[Flags]:
    """Return when each of Sloth's two alerts fires: page, of the fast pairs, and ticket."""
    fires = [
        np.logical_and.reduce(
            [window(bad, long) > factor * 0.01 * window(total, long) for long in (first, second)]
        )
        for factor, first, second in PAIRS
    ]
    return [fires[0] | fires[1], fires[2] | fires[3]]


def window(values: Counts, length: int) -> Counts:
    """Return the sum of each minute and those before it."""
    sums = np.concatenate([np.zeros(length, np.int64), np.cumsum(values)])
    return np.asarray(sums[length:] - sums[:-length])


@dataclass(frozen=True)
class Said:
    """What one way of alerting says in the month.

    Attributes:
        begins: minutes at which an alert of it begins.
        ends: minutes at which one ends.
        messages: how many a channel gets: of beginnings, changes and ends.
    """

    begins: tuple[int, ...]
    ends: tuple[int, ...]
    messages: int

    def waited(self, incident: Incident) -> int | None:
        """Return the minutes from the begin of an incident to its first notice; None: never.

        A minute is judged at its end.
        """
        known = (
            at + 1 - incident.begin for at in self.begins if incident.begin <= at <= incident.end
        )
        return next(known, None)

    def of(self, incident: Incident) -> int:
        """Return how often an alert begins during an incident."""
        return sum(incident.begin <= at <= incident.end for at in self.begins)

    def false(self) -> int:
        """Return how often an alert begins outside of all incidents."""
        return len(self.begins) - sum(self.of(one) for one in INCIDENTS)


def of_changes(changes: list[Change]) -> Said:
    """Return what ours says: a channel is told what `Told` lets through."""
    told, messages = Told(), 0
    for change in changes:
        alert = replace(
            BURN,
            alert_id=f"chat/slo:latency/{change.began_ns}",
            at_ns=change.at_ns,
            state=change.after.value,
            before=change.before.value,
            change_reason=change.reason.value,
            severity="" if change.severity is None else change.severity.value,
            sequence=change.sequence,
        )
        if told.decide(alert) is Decision.TELL:
            told.note(alert)
            messages += 1
    begins = (c for c in changes if c.after is AlertStatus.FIRING != c.before)
    ends = (c for c in changes if c.after is AlertStatus.RESOLVED)
    return Said(tuple(map(_minute, begins)), tuple(map(_minute, ends)), messages)


def of_flags(alerts: list[Flags]) -> Said:
    """Return what rules say that tell each begin and each end of each of their alerts."""
    begins = sorted(at for fires in alerts for at in _edges(fires, begin=True))
    ends = sorted(at for fires in alerts for at in _edges(fires, begin=False))
    return Said(tuple(begins), tuple(ends), len(begins) + len(ends))


WAYS: Final[dict[str, Callable[[Counts, Counts], Said]]] = {
    "tailbudget": lambda total, bad: of_changes(changes_of(total, bad)),
    "static P99 > 500 ms": lambda total, bad: of_flags(static(total, bad)),
    "Sloth's rules": lambda total, bad: of_flags(sloth(total, bad)),
}
"""Ways of alerting, by name."""


def _edges(fires: Flags, *, begin: bool) -> list[int]:
    before = fires[:-1].astype(np.int8)
    moved = fires[1:].astype(np.int8) - before
    found = np.flatnonzero(moved == (1 if begin else -1)) + 1
    return [int(at) for at in found if at >= FILLING * DAY]


def _minute(change: Change) -> int:
    return change.at_ns // MINUTE_NS


def _last(counts: SloCounts, now_ns: int, seconds: int) -> Count:
    return counts.last(now_ns, seconds * 10**9)
