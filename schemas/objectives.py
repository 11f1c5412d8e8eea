"""Service-level objectives over weeks: what counts as good, how much must be, over which time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from tailbudget.schemas.cohorts import ALL, Cohort

MINUTE_S: Final = 60
UNITS: Final = ("m", "h", "d", "w", "M", "Q", "Y")
"""Units of a period, as OpenSLO writes them; M, Q and Y are a month, a quarter and a year."""


class Severity(StrEnum):
    """How urgent an alert is."""

    PAGE = "page"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True)
class Period:
    """The time that an error budget is for.

    Attributes:
        count: how many units.
        unit: one of `UNITS`.
        start: local wall time at which some period begins, ISO 8601 without an offset; empty for
            a rolling period, which ends now.
        zone: IANA time zone of `start`.
    """

    count: int
    unit: str
    start: str = ""
    zone: str = "UTC"

    def text(self) -> str:
        """Return the period as OpenSLO writes it, such as 30d."""
        return f"{self.count}{self.unit}"


@dataclass(frozen=True, slots=True)
class BurnRule:
    """Fire while the budget burns at least so fast over a long and a short window.

    Attributes:
        severity: how urgent that is.
        factor: burn rate; 1 spends the budget in exactly the period.
        long_s: length of the long window.
        short_s: length of the short window, which ends the alert soon after the fault.
        inclusive: it fires at the factor, not only beyond it.
    """

    severity: Severity
    factor: float
    long_s: int
    short_s: int
    inclusive: bool = False


@dataclass(frozen=True, slots=True)
class AlertTiming:
    """When an alert that is due is told, and when it is over.

    Attributes:
        min_bad: bad events in the long window below which nothing fires.
        pending_s: how long the condition must hold before it fires.
        keep_firing_s: how long it must be over before it is resolved.
        no_data_s: silence after which there is nothing to judge by.
    """

    min_bad: int = 10
    pending_s: float = 0.0
    keep_firing_s: float = 0.0
    no_data_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Telling:
    """Who hears of an objective's alert, and of what.

    Attributes:
        channels: names of the only channels that hear of it; empty: those that want it.
        breaching: tell that it fires.
        resolved: tell that it is over.
        no_data: tell that it cannot be judged.
    """

    channels: tuple[str, ...] = ()
    breaching: bool = True
    resolved: bool = True
    no_data: bool = True


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective of one service.

    Attributes:
        service: the service's name.
        name: unique within the service.
        target: share of events that must be good, above 0 and below 1.
        threshold_ms: a request is good at or below it; None: one that did not fail is good.
        cohort: dimensions and values that a request must have to count; empty: all requests.
        period: what the error budget is for.
        slice_s: None: events are requests. Else events are slices of so many seconds.
        slice_target: share of a slice's requests that must be good for a good slice.
        rules: when it alerts; empty for the standard rules of the period.
        timing: when an alert is told, and when it is over.
        telling: who hears of it.
    """

    service: str
    name: str
    target: Fraction
    threshold_ms: float | None = None
    cohort: Cohort = ALL
    period: Period = Period(30, "d")
    slice_s: int | None = None
    slice_target: Fraction = Fraction(1)
    rules: tuple[BurnRule, ...] = ()
    timing: AlertTiming = AlertTiming()
    telling: Telling = Telling()

    @property
    def allowed(self) -> Fraction:
        """Share of events that may be bad."""
        return 1 - self.target


@dataclass(frozen=True, slots=True)
class Correction:
    """A span that does not count against the corrected figure, such as a maintenance.

    Attributes:
        start_ns: its start, event time.
        end_ns: its end, exclusive.
        why: for a person.
    """

    start_ns: int
    end_ns: int
    why: str

    def covers(self, at_ns: int) -> bool:
        """Return whether a moment is in it."""
        return self.start_ns <= at_ns < self.end_ns


def share(percent: float | str) -> Fraction:
    """Return per cent as an exact share: 99.9 is 999/1000, as it is written.

    Raises:
        ValueError: it is no number.
    """
    return Fraction(str(percent)) / 100
