"""What is left of an error budget, and when it will be spent at this rate.

The budget of an objective with target t is the share 1 - t of its events (Beyer et al., The Site
Reliability Workbook, chapter 2). Of a period that is not over, or that began before the service
did, the events that are missing are taken to be as many as there were, hour for hour: in the first
hour of a month nobody has spent a month's budget. Where slices are counted, the budget is that
share of all slices of the period, and a slice without requests spends nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.slo_window import SECOND_NS, Span, length_s, span_at
from tailbudget.models.tally import as_slices, between, count, without
from tailbudget.schemas.budgets import Budget, Budgets
from tailbudget.schemas.objectives import Correction, Objective
from tailbudget.schemas.tally import Tally

RECENT_SHARE: Final = 720
"""The newest events are those of the period's length over this: an hour of 30 days, which is the
window of the fastest burn rate."""

_STEPS: Final = 720
"""Moments at which the future is looked at before the crossing is searched between two."""


@dataclass(frozen=True, slots=True)
class _Period:
    """The period that a moment belongs to.

    Attributes:
        span: from its start to its end.
        first_ns: since when there are events in it.
        covered: part of it that lies between then and the moment.
    """

    span: Span
    first_ns: int
    covered: float


@dataclass(frozen=True, slots=True)
class _Future:
    """What the period will hold at later moments, were the newest rates to last.

    Attributes:
        span: the period now.
        rolling: old events leave the period as time goes.
        now_ns: from when on the newest rates count.
        starts_ns: [N] slices of the past, ascending.
        total: [N + 1] events of the slices before each, cumulated.
        bad: [N + 1] bad ones, likewise.
        rates: events and bad events a nanosecond.
        share: of events that may be bad; None where `allowed` is a number.
        allowed: bad events allowed in the period; used where the share is None.
        first_ns: since when there are events.
    """

    span: Span
    rolling: bool
    now_ns: int
    starts_ns: NDArray[np.int64]
    total: NDArray[np.int64]
    bad: NDArray[np.int64]
    rates: tuple[float, float]
    share: float | None
    allowed: float
    first_ns: int

    def overspent(self, at_ns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the budget is spent at each moment."""
        ahead = at_ns - self.now_ns
        left = self.span.start_ns + (ahead if self.rolling else 0)
        gone = np.searchsorted(self.starts_ns, np.broadcast_to(left, at_ns.shape))
        bad = self.bad[-1] - self.bad[gone] + self.rates[1] * ahead
        if self.share is None:
            return np.asarray((bad >= self.allowed) & (bad > 0), np.bool_)
        total = self.total[-1] - self.total[gone] + self.rates[0] * ahead
        length_ns = self.span.end_ns - self.span.start_ns
        covered = np.clip((at_ns - np.maximum(left, self.first_ns)) / length_ns, 1e-9, 1)
        return np.asarray((bad >= self.share * total / covered) & (bad > 0), np.bool_)


def budgets(
    counted: Tally, objective: Objective, now_ns: int, corrections: Sequence[Correction] = ()
) -> Budgets:
    """Return the budget of the period that a moment belongs to, with and without corrections.

    Args:
        counted: requests of the objective over the period at least; where it counts slices, in
            slices of `slice_s`.
        objective: what was promised.
        now_ns: the moment; later slices do not count.
        corrections: spans that the corrected figure leaves out.
    """
    period = _period(counted, objective, now_ns)
    span = period.span
    inside = between(counted, span.start_ns, now_ns)
    touched = [c for c in corrections if c.start_ns < now_ns and c.end_ns > span.start_ns]
    corrected = without(inside, touched)
    return Budgets(
        measured=_budget(inside, objective, period, now_ns),
        corrected=_budget(corrected, objective, period, now_ns) if touched else None,
        excluded=tuple(
            f"{one.why}: {_slices(inside) - _slices(without(inside, [one]))} slices"
            for one in touched
        ),
    )


def cost_pct(counted: Tally, objective: Objective, incident: Span, now_ns: int) -> float | None:
    """Return the part of the budget that an incident spent, per cent; None without events."""
    period = _period(counted, objective, now_ns)
    events = _events(between(counted, period.span.start_ns, now_ns), objective, now_ns)
    allowed = _allowed(events, objective, period)
    spent = count(between(events, incident.start_ns, incident.end_ns)).bad
    return 100 * spent / allowed if allowed else None


def onset_ns(counted: Tally, objective: Objective, began_ns: int) -> int:
    """Return when a fault began that was noticed at `began_ns`.

    It is the start of the run of slices up to then of which more events were bad than may be;
    slices without events do not end it.
    """
    before = between(counted, 0, began_ns)
    limit = float(objective.allowed) * (before.total + before.unknown)
    fine = np.flatnonzero(before.bad <= limit)
    first = int(fine[-1]) + 1 if len(fine) else 0
    return int(before.start_ns[first]) if first < len(before.start_ns) else began_ns


def _period(counted: Tally, objective: Objective, now_ns: int) -> _Period:
    span = span_at(objective.period, now_ns)
    firsts = counted.start_ns[:1].tolist()
    first_ns = min(max([span.start_ns, *firsts]), now_ns)
    covered_ns = max(now_ns - first_ns, counted.slice_ns)
    return _Period(span, first_ns, min(covered_ns / (span.end_ns - span.start_ns), 1.0))


def _budget(counted: Tally, objective: Objective, period: _Period, now_ns: int) -> Budget:
    events, span = _events(counted, objective, now_ns), period.span
    sums = count(events)
    allowed = _allowed(events, objective, period)
    recent_s = max(length_s(objective.period) // RECENT_SHARE, objective.slice_s or 60)
    recent = count(between(events, now_ns - recent_s * SECOND_NS, now_ns))
    burn = None
    if recent.total:
        burn = recent.bad / recent.total / float(objective.allowed)
    return Budget(
        objective=objective.name,
        unit="slices" if objective.slice_s else "requests",
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        now_ns=now_ns,
        total=sums.total,
        bad=sums.bad,
        unknown=sums.unknown,
        allowed=allowed,
        good_pct=100 * (1 - sums.bad / sums.total) if sums.total else None,
        target_pct=float(100 * objective.target),
        left_pct=100 * (1 - sums.bad / allowed) if sums.total else None,
        covered_pct=100 * period.covered,
        burn_rate=burn,
        recent_s=recent_s,
        exhausted_ns=_exhausted_ns(events, objective, period, now_ns, recent_s),
    )


def _events(counted: Tally, objective: Objective, now_ns: int) -> Tally:
    """Return the events of an objective: requests, or the slices that are over."""
    if objective.slice_s is None:
        return counted
    open_ns = now_ns - now_ns % counted.slice_ns
    return as_slices(between(counted, 0, open_ns), objective.slice_target)


def _allowed(events: Tally, objective: Objective, period: _Period) -> float:
    if objective.slice_s is None:
        return float(objective.allowed * count(events).total) / period.covered
    slices = (period.span.end_ns - period.span.start_ns) / (objective.slice_s * SECOND_NS)
    return float(objective.allowed) * slices


def _exhausted_ns(
    events: Tally, objective: Objective, period: _Period, now_ns: int, recent_s: int
) -> int | None:
    length_ns = recent_s * SECOND_NS
    recent = count(between(events, now_ns - length_ns, now_ns))
    if not recent.total:
        return None
    rolling, span = not objective.period.start, period.span
    future = _Future(
        span=span,
        rolling=rolling,
        now_ns=now_ns,
        starts_ns=events.start_ns,
        total=_cumulated(events.total),
        bad=_cumulated(events.bad),
        rates=(recent.total / length_ns, recent.bad / length_ns),
        share=float(objective.allowed) if objective.slice_s is None else None,
        allowed=_allowed(events, objective, period),
        first_ns=period.first_ns,
    )
    end_ns = now_ns + length_s(objective.period) * SECOND_NS if rolling else span.end_ns
    moments = np.linspace(now_ns, end_ns, _STEPS + 1).astype(np.int64)
    spent = np.flatnonzero(future.overspent(moments))
    if not len(spent):
        return None
    first = int(spent[0])
    return now_ns if first == 0 else _search(future, int(moments[first - 1]), int(moments[first]))


def _search(future: _Future, before_ns: int, after_ns: int) -> int:
    """Return, to the second, when the budget is spent between two moments."""
    while after_ns - before_ns > SECOND_NS:
        middle_ns = (before_ns + after_ns) // 2
        if future.overspent(np.array([middle_ns]))[0]:
            after_ns = middle_ns
        else:
            before_ns = middle_ns
    return after_ns


def _cumulated(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])


def _slices(counted: Tally) -> int:
    return len(counted.start_ns)
