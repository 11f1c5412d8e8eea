"""What is kept of alerts in ClickHouse: their changes, and what became of each notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One change of an alert; the fields are the columns of `alert_changes`, in order.

    Attributes:
        service: the service's name.
        alert: name of the alert within the service.
        sequence: number of the change within its alert.
        at_ns: event time of the change.
        alert_id: the same for all changes of one incident.
        before: the state that it left.
        after: the state that it reached.
        reason: why, one of `ChangeReason`.
        detail: the figures, for a person.
        severity: "page", "ticket", or empty.
        began_ns: when the incident began.
        cleared_ns: since when its condition is over.
        budget_left_pct: part of the error budget that is left.
        budget_cost_pct: part of it that the incident spent.
        state: the state after the change as JSON.
        payload: the whole message as JSON.
    """

    service: str
    alert: str
    sequence: int
    at_ns: int
    alert_id: str
    before: str
    after: str
    reason: str
    detail: str
    severity: str
    began_ns: int | None
    cleared_ns: int | None
    budget_left_pct: float | None
    budget_cost_pct: float | None
    state: str
    payload: str


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """What became of one notice on one channel; the fields are the columns of `alert_notices`.

    Attributes:
        service: the service's name.
        alert: name of the alert within the service.
        sequence: number of the change that it told.
        channel: name of the channel.
        at_ns: when, by our clock.
        state: the state that it told.
        severity: the urgency that it told.
        outcome: "delivered", "refused" or "given_up".
        attempts: how often it was sent.
        error: what the channel said last.
        handle: what the channel gave for the message; empty where it gives nothing.
    """

    service: str
    alert: str
    sequence: int
    channel: str
    at_ns: int
    state: str
    severity: str
    outcome: str
    attempts: int
    error: str = ""
    handle: str = ""
