"""Burn rates: how fast an error budget is spent, and whether somebody must act.

A burn rate is the bad share of the events of a window over the share that may be bad; 1 spends
the budget in exactly the period. It is weighted by events: a window is counted as a whole, and
quiet hours do not weigh as much as busy ones. A rule asks for its rate over a long window, so that
something was really spent, and over a short one, so that it ends soon after the fault does: Beyer
et al., The Site Reliability Workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

from tailbudget.models.binomial import lower_tail
from tailbudget.models.slo_window import length_s
from tailbudget.schemas.alerts import Condition, Reading
from tailbudget.schemas.objectives import BurnRule, Objective, Period, Severity
from tailbudget.schemas.tally import Count

SHORT_SHARE: Final = 12
"""The long window is so many times the short one (the same chapter)."""

STANDARD: Final = (
    (Severity.PAGE, Fraction(2, 100), 720),
    (Severity.PAGE, Fraction(5, 100), 120),
    (Severity.TICKET, Fraction(10, 100), 30),
    (Severity.TICKET, Fraction(10, 100), 10),
)
"""Severity, share of the budget, and into how many long windows the period is cut. Of 30 days:
2 % in 1 h is 14.4x, 5 % in 6 h is 6x, 10 % in 3 d is 1x (the same chapter, table 5-8), and
10 % in 1 d is 3x (Sloth, windows/google-30d.yaml)."""

REACHABLE_SHARE: Final = Fraction(1, 2)
"""Where a factor is beyond what all events bad make, the window grows until so large a share of
bad events reaches it."""

CLEAR_SHARE: Final = 0.95
"""A rule that fires is over when its short window burns at or below this share of its factor."""

POWER: Final = 30
"""Bad events that may be, in the newest part of a short window, before it is judged by itself.
At 0.4 of its budget a service has 12 of them, and by chance more than 30 once in a million."""

CHANCE: Final = 0.001
"""A fault is surely over when chance gives so few bad events this rarely, were the budget still
spent as fast as it may be. It is asked every second for days, and must not be wrong by then."""

FEW: Final = 3
"""Bad events that fire where traffic is too low for `AlertTiming.min_bad`, if at least half of all
events of the long window were bad."""

Counts = Callable[[int], Count]
"""From the length of a window that ends now, in seconds, to its events."""


@dataclass(frozen=True, slots=True)
class Burn:
    """What one rule measures.

    Attributes:
        rule: the rule.
        long: burn rate over its long window, unknown events left out; None without events.
        short: the same over its short window.
        long_count: events of the long window.
        burning: whether it fires; None when unknown events decide.
        holding: it would not fire, and is not over either.
    """

    rule: BurnRule
    long: float | None
    short: float | None
    long_count: Count
    burning: bool | None
    holding: bool


@lru_cache(maxsize=4096)
def rules_of(objective: Objective) -> tuple[BurnRule, ...]:
    """Return the rules of an objective: its own, or the standard ones of its period."""
    if objective.rules:
        return objective.rules
    return standard_rules(objective.period, objective.allowed, objective.slice_s or 1)


def standard_rules(period: Period, allowed: Fraction, step_s: int = 1) -> tuple[BurnRule, ...]:
    """Return the standard rules: factor = share of the budget x period / long window.

    No rule asks for a rate that cannot be: with every event bad it is 1 / allowed.

    Args:
        period: what the budget is for.
        allowed: share of events that may be bad.
        step_s: windows are whole numbers of so many seconds, at least one.
    """
    budget = (length_s(period), allowed)
    return tuple(
        _rule(severity, share, Fraction(budget[0], cuts), budget, step_s)
        for severity, share, cuts in STANDARD
    )


def largest_rate(allowed: Fraction) -> float:
    """Return the burn rate of a window in which every event is bad."""
    return float(1 / allowed)


def measure(objective: Objective, counts: Counts, age_s: float | None = None) -> tuple[Burn, ...]:
    """Return what each rule of an objective measures now.

    A window that reaches back beyond the first event counts as if the time before had brought as
    many events, all good: else the first failures of a young service would burn a whole budget.

    Args:
        objective: what was promised.
        counts: events of the windows that end now.
        age_s: how long ago the first event ever was; None when that is beyond every window.
    """
    return tuple(_burn(rule, objective, counts, age_s) for rule in rules_of(objective))


def reading(objective: Objective, burns: Sequence[Burn], silent_s: float | None) -> Reading:
    """Return what the rules say together: one alert for one objective.

    Args:
        objective: what was promised.
        burns: what each rule measures.
        silent_s: how long ago the newest event was; None when there never was one.
    """
    if silent_s is None or silent_s >= objective.timing.no_data_s:
        said = "no event yet" if silent_s is None else f"no event for {silent_s:,.0f} s"
        return Reading(Condition.NO_DATA, detail=said)
    if burning := [one for one in burns if one.burning]:
        worst = min(burning, key=_urgency)
        return Reading(Condition.BAD, worst.rule.severity, text(worst, objective))
    if unsure := [one for one in burns if one.burning is None]:
        unknown = unsure[0].long_count.unknown
        return Reading(
            Condition.UNMEASURABLE, detail=f"{unknown:,} events that nobody can judge decide"
        )
    holding = next((one for one in burns if one.holding), None)
    shown = holding or min(burns, key=_urgency)
    condition = Condition.HOLD if holding else Condition.GOOD
    return Reading(condition, detail=text(shown, objective))


def text(burn: Burn, objective: Objective) -> str:
    """Return the figures of a rule, for a person."""
    rule, counted = burn.rule, burn.long_count
    unit = "slices" if objective.slice_s else "requests"
    return (
        f"budget burns at {_rate(burn.long)} over {_span(rule.long_s)} and {_rate(burn.short)} over"
        f" {_span(rule.short_s)}, {rule.factor:.3g}x allowed: {counted.bad:,} of"
        f" {counted.total:,} {unit} bad"
    )


def _rule(
    severity: Severity,
    share: Fraction,
    long_s: Fraction,
    budget: tuple[int, Fraction],
    step_s: int,
) -> BurnRule:
    period_s, allowed = budget
    factor = share * period_s / long_s
    if factor >= 1 / allowed:
        factor = REACHABLE_SHARE / allowed
        long_s = share * period_s / factor
    short_s = long_s / SHORT_SHARE
    return BurnRule(severity, float(factor), _whole(long_s, step_s), _whole(short_s, step_s))


def _whole(seconds: Fraction, step_s: int) -> int:
    return max(round(seconds / step_s), 1) * step_s


def _burn(rule: BurnRule, objective: Objective, counts: Counts, age_s: float | None) -> Burn:
    long, short = counts(rule.long_s), counts(rule.short_s)
    allowed = float(objective.allowed)
    long_allowed = allowed / _filled(rule.long_s, age_s)
    short_allowed = allowed / _filled(rule.short_s, age_s)
    few = _few(long)
    enough = long.bad >= objective.timing.min_bad or few
    possible = enough or long.bad + long.unknown >= objective.timing.min_bad
    # Where events are rare, an empty short window says nothing.
    quiet = not _events(short)
    over = _all(
        (
            _over(long, rule.factor * long_allowed, rule),
            few if quiet else _over(short, rule.factor * short_allowed, rule),
        )
    )
    if over is True and not enough:
        over = None if possible and long.unknown else False
    latest = _latest(rule, allowed, counts)
    if over and latest is not None and latest.bad + latest.unknown <= allowed * _events(latest):
        over = False
    ended = latest is not None and _surely_within(latest, allowed)
    near = rule.factor * CLEAR_SHARE
    still = _over(long, near * long_allowed, rule) is not False and (
        quiet or _over(short, near * short_allowed, rule) is not False
    )
    return Burn(
        rule=rule,
        long=_burn_rate(long, long_allowed),
        short=_burn_rate(short, short_allowed),
        long_count=long,
        burning=over if possible else False,
        holding=enough and still and not ended,
    )


def _latest(rule: BurnRule, allowed: float, counts: Counts) -> Count | None:
    """Return the newest part of a slow rule's short window; None where there are too few events.

    That window is hours long: an outage that was paged and mended would be a ticket for as long,
    though nothing is wrong any more.
    """
    if rule.severity is not Severity.TICKET:
        return None
    for parts in (12, 6, 3):
        newest = counts(max(rule.short_s // parts, 1))
        if allowed * _events(newest) >= POWER:
            return newest
    return None


def _surely_within(counted: Count, allowed: float) -> bool:
    return lower_tail(counted.bad + counted.unknown, _events(counted), allowed) < CHANCE


def _events(counted: Count) -> int:
    return counted.total + counted.unknown


def _filled(window_s: int, age_s: float | None) -> float:
    """Return the part of a window that is not before the first event."""
    return 1.0 if age_s is None else min(max(age_s, 1.0) / window_s, 1.0)


def _burn_rate(counted: Count, allowed: float) -> float | None:
    return counted.bad / counted.total / allowed if counted.total else None


def _few(counted: Count) -> bool:
    return counted.bad >= FEW and 2 * counted.bad >= _events(counted)


def _over(counted: Count, allowed: float, rule: BurnRule) -> bool | None:
    """Return whether more than a share of a window is bad; None where unknown events decide."""
    limit = allowed * _events(counted)
    if _beyond(counted.bad, limit, rule):
        return True
    return None if _beyond(counted.bad + counted.unknown, limit, rule) else False


def _beyond(bad: int, limit: float, rule: BurnRule) -> bool:
    return bad > limit or (rule.inclusive and 0 < bad == limit)


def _all(parts: Sequence[bool | None]) -> bool | None:
    """Return whether all hold; None where only unknown ones stand in the way."""
    if False in parts:
        return False
    return None if None in parts else True


def _urgency(burn: Burn) -> tuple[bool, float]:
    return burn.rule.severity is not Severity.PAGE, -burn.rule.factor


def _rate(value: float | None) -> str:
    return "an unknown rate" if value is None else f"{value:.3g}x"


def _span(seconds: int) -> str:
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.4g} {name}"
    return f"{seconds} s"
