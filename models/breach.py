"""When does a breach begin and end? One state machine for each service and percentile.

It fires at the first step at which a target is missed beyond doubt, and not at one that chance
explains. It resolves when the target is met beyond doubt, or comfortably for `CLEAR_NS`. A step
without enough requests freezes it: silence is neither a breach nor a recovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

from tailbudget.models.binomial import lower_tail, upper_tail
from tailbudget.models.ranks import EVIDENCE, requests_needed
from tailbudget.models.snapshot import allowed_share
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.verdicts import Percentile, Verdict

CHANCE: Final = 0.01
"""A judgement stands when chance gives the same count this rarely (one-sided)."""

CLEAR_SHARE: Final = 0.95
"""A target is met comfortably at or below this share of it."""

CLEAR_NS: Final = 10_000_000_000
"""How long a target must be met comfortably, 10 s."""


class Reason(StrEnum):
    """Why a state changed."""

    OVER = "over_target"
    CLEARLY_WITHIN = "clearly_within_target"
    HELD_WITHIN = "held_within_target"


@dataclass(frozen=True, slots=True)
class BreachState:
    """Where a percentile of a service stands.

    Attributes:
        firing: the target is missed.
        since_ns: when `firing` last changed; None before the first breach.
        clear_since_ns: since when a firing target is met comfortably, without a gap.
        frozen: the last step could not judge; `firing` is what was last known.
    """

    firing: bool = False
    since_ns: int | None = None
    clear_since_ns: int | None = None
    frozen: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads, fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> BreachState:
        """Return the state that `to_dict` wrote.

        Raises:
            TypeError: the mapping has other keys.
        """
        return cls(**stored)


@dataclass(frozen=True, slots=True)
class Transition:
    """A breach begins or ends.

    Attributes:
        firing: it begins.
        at_ns: when.
        began_ns: when the breach began that begins or ends.
        reason: why.
        detail: the figures, for a person.
        row: the percentile at that time.
    """

    firing: bool
    at_ns: int
    began_ns: int
    reason: Reason
    detail: str
    row: Percentile


def step(state: BreachState, row: Percentile, now_ns: int) -> tuple[BreachState, Transition | None]:
    """Return the state after one more measurement, and the change when there is one.

    Args:
        state: the state before.
        row: p50, p95 or p99, failures counted.
        now_ns: time of the measurement; steps come in order of time.
    """
    if row.over is None or row.status in (None, Verdict.INSUFFICIENT, Verdict.NO_DATA):
        return replace(state, frozen=True, clear_since_ns=None), None
    state = replace(state, frozen=False)
    if not state.firing:
        if _clearly_over(row):
            return _change(BreachState(firing=True, since_ns=now_ns), state, row, Reason.OVER)
        return state, None
    comfortable = _comfortable(row)
    since = state.clear_since_ns
    clear_since_ns = (now_ns if since is None else since) if comfortable else None
    resolved = BreachState(firing=False, since_ns=now_ns)
    if _clearly_within(row):
        return _change(resolved, state, row, Reason.CLEARLY_WITHIN)
    if clear_since_ns is not None and now_ns - clear_since_ns >= CLEAR_NS:
        return _change(resolved, state, row, Reason.HELD_WITHIN)
    return replace(state, clear_since_ns=clear_since_ns), None


def _clearly_over(row: Percentile) -> bool:
    over = row.over or 0
    enough = row.n >= requests_needed(QUANTILES[row.percentile]) or over >= EVIDENCE
    share = float(allowed_share(row.percentile))
    return row.status is Verdict.BREACH and enough and upper_tail(over, row.n, share) < CHANCE


def _clearly_within(row: Percentile) -> bool:
    share = float(allowed_share(row.percentile))
    return row.status is not Verdict.BREACH and lower_tail(row.over or 0, row.n, share) < CHANCE


def _comfortable(row: Percentile) -> bool:
    if row.status is Verdict.BREACH or row.measured_ms is None or row.slo_ms is None:
        return False
    return row.measured_ms <= CLEAR_SHARE * row.slo_ms


def _change(
    after: BreachState, before: BreachState, row: Percentile, reason: Reason
) -> tuple[BreachState, Transition]:
    at_ns = after.since_ns or 0
    began_ns = at_ns if after.firing or before.since_ns is None else before.since_ns
    return after, Transition(after.firing, at_ns, began_ns, reason, detail(row), row)


def detail(row: Percentile) -> str:
    """Return the figures that a step goes by, for a person."""
    measured = f"{row.measured_ms:,.4g} ms" if row.measured_ms is not None else row.note
    allowed = float(100 * allowed_share(row.percentile))
    return (
        f"{row.percentile} {measured} against {row.slo_ms:,.10g} ms: "
        f"{row.over:,} of {row.n:,} requests beyond it, {allowed:g} % allowed"
    )
