"""When does a breach begin and end? The statistical gate of a percentile of a service.

It fires at the first step at which a target is missed beyond doubt, and not at one that chance
explains. It resolves when the target is met beyond doubt, or comfortably for `CLEAR_NS`. A step
without enough requests freezes it: silence is neither a breach nor a recovery.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tailbudget.models.binomial import lower_tail, upper_tail
from tailbudget.models.figures import figure
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


def step(state: BreachState, row: Percentile, now_ns: int) -> BreachState:
    """Return the state after one more measurement.

    Args:
        state: the state before.
        row: p50, p95 or p99, failures counted.
        now_ns: time of the measurement; steps come in order of time.
    """
    if row.over is None or row.status in (None, Verdict.INSUFFICIENT, Verdict.NO_DATA):
        return replace(state, frozen=True, clear_since_ns=None)
    state = replace(state, frozen=False)
    if not state.firing:
        return BreachState(firing=True, since_ns=now_ns) if _clearly_over(row) else state
    since = state.clear_since_ns
    clear_since_ns = (now_ns if since is None else since) if _comfortable(row) else None
    held = clear_since_ns is not None and now_ns - clear_since_ns >= CLEAR_NS
    if held or _clearly_within(row):
        return BreachState(firing=False, since_ns=now_ns)
    return replace(state, clear_since_ns=clear_since_ns)


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


def detail(row: Percentile) -> str:
    """Return the figures that a step goes by, for a person."""
    measured = f"{figure(row.measured_ms)} ms" if row.measured_ms is not None else row.note
    allowed = float(100 * allowed_share(row.percentile))
    return (
        f"{row.percentile} {measured} against {row.slo_ms:,.10g} ms: "
        f"{row.over:,} of {row.n:,} requests beyond it, {allowed:g} % allowed"
    )
