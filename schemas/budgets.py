"""What is left of an error budget."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """An error budget at a moment.

    Attributes:
        objective: name of the objective.
        unit: "requests" or "slices": what is counted.
        start_ns: start of the period.
        end_ns: its end; a rolling period ends at `now_ns`.
        now_ns: the moment.
        total: events so far that are known to count.
        bad: those of them that were bad.
        unknown: events of which nobody can say; they are in no figure.
        allowed: bad events that the budget is for: the allowed share of the events that the whole
            period will have at the traffic so far, or of all its slices.
        good_pct: share of events that were good; None without events.
        target_pct: share that must be.
        covered_pct: part of the period that lies between its first event and `now_ns`.
        left_pct: part of the budget that is left, below 0 when more was spent; None without events.
        burn_rate: bad share of the newest events over the allowed share; None without such events.
        recent_s: how long the newest events go back.
        exhausted_ns: when the budget will be spent at the newest rates, at most one period ahead;
            `now_ns` where it is spent; None when it will not be, or nothing is known.
    """

    objective: str
    unit: str
    start_ns: int
    end_ns: int
    now_ns: int
    total: int
    bad: int
    unknown: int
    allowed: float
    good_pct: float | None
    target_pct: float
    covered_pct: float
    left_pct: float | None
    burn_rate: float | None
    recent_s: int
    exhausted_ns: int | None


@dataclass(frozen=True, slots=True)
class Budgets:
    """A budget as measured, and with status corrections.

    Attributes:
        measured: everything counts.
        corrected: without the spans of `excluded`; None when there are none in the period.
        excluded: why spans are left out, with their number of slices that had events.
    """

    measured: Budget
    corrected: Budget | None
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """An error budget as ClickHouse keeps it; the fields are the columns of `budgets`, in order.

    Attributes:
        service: the service's name.
        objective: name of the objective.
        at_ns: event time.
        total: events of the period so far.
        bad: those of them that were bad.
        target_pct: share of events that must be good.
        left_pct: part of the budget that is left.
        corrected_pct: the same without maintenance; None where there was none.
        burn_rate: of the newest events.
        exhausted_ns: when the budget is spent at this rate.
        status: of its alert, one of `AlertStatus`.
    """

    service: str
    objective: str
    at_ns: int
    total: int
    bad: int
    target_pct: float
    left_pct: float | None
    corrected_pct: float | None
    burn_rate: float | None
    exhausted_ns: int | None
    status: str


@dataclass(frozen=True, slots=True)
class KeptBudget:
    """An error budget in a report: as it was at the end of the span.

    Attributes:
        objective: name of the objective.
        at: RFC 3339 time.
        total: events of the period so far.
        bad: those of them that were bad.
        target_pct: share of events that must be good.
        left_pct: part of the budget that is left, below 0 when more was spent.
        corrected_pct: the same without maintenance; None where there was none.
        burn_rate: of the newest events; 1 spends the budget in exactly the period.
        exhausted_at: when the budget is spent at this rate; None when it is not.
        status: of its alert, one of `AlertStatus`.
    """

    objective: str
    at: str
    total: int
    bad: int
    target_pct: float
    left_pct: float | None
    corrected_pct: float | None
    burn_rate: float | None
    exhausted_at: str | None
    status: str


@dataclass(frozen=True, slots=True)
class KeptSilence:
    """A silence in a report.

    Attributes:
        alert: name of the only alert that was muted; empty: all of the service.
        begins: RFC 3339 time.
        ends: RFC 3339 time.
        reason: why.
    """

    alert: str
    begins: str
    ends: str
    reason: str
