"""Alerts: their states, and what moves them from one to another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tailbudget.schemas.objectives import Severity


class AlertStatus(StrEnum):
    """Where an alert stands."""

    RESOLVED = "resolved"
    PENDING = "pending"
    FIRING = "firing"
    NO_DATA = "no_data"
    MUTED = "muted"


class Condition(StrEnum):
    """What a measurement says.

    `HOLD` neither begins nor ends anything; `UNMEASURABLE` means that there are events, and that
    nobody can say whether they were bad.
    """

    BAD = "bad"
    GOOD = "good"
    HOLD = "hold"
    NO_DATA = "no_data"
    UNMEASURABLE = "unmeasurable"


class ChangeReason(StrEnum):
    """Why an alert moved from one state to another."""

    BEGAN = "condition_began"
    HELD = "condition_held"
    AT_ONCE = "condition_met"
    PASSED = "condition_passed_while_pending"
    CLEARED = "condition_cleared"
    ESCALATED = "severity_rose"
    SILENT = "no_data"
    UNMEASURABLE = "cannot_be_measured"
    DATA_BACK = "data_came_back"
    MUTED = "muted"
    UNMUTED = "no_longer_muted"


@dataclass(frozen=True, slots=True)
class Reading:
    """One measurement of an alert's condition.

    Attributes:
        condition: what it says.
        severity: how urgent it is; only with `BAD`.
        detail: the figures, for a person.
    """

    condition: Condition
    severity: Severity | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """An alert moved from one state to another.

    Attributes:
        sequence: number of the change within its alert, from 1.
        before: the state that it left.
        after: the state that it reached; the same as `before` when only the severity rose.
        reason: why.
        at_ns: when.
        began_ns: when the incident began that this belongs to; None outside of incidents.
        cleared_ns: since when the condition is over; only when it ends.
        severity: how urgent the incident is at its worst.
        detail: the figures, for a person.
    """

    sequence: int
    before: AlertStatus
    after: AlertStatus
    reason: ChangeReason
    at_ns: int
    began_ns: int | None
    cleared_ns: int | None
    severity: Severity | None
    detail: str
