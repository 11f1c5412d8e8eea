"""What part a covariate plays: the work to be done, the load it meets, or the wait before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

Role = Literal["work", "load", "wait"]
Floats = NDArray[np.float64]

SLOTS: Final[tuple[Role, ...]] = ("work", "work", "work", "load", "load", "wait", "wait")
"""A regression has room for so many covariates of each role."""

_WAIT: Final = {"wait", "waiting", "waits", "queue", "queued", "queueing", "backlog", "pending"}
_LOAD: Final = {
    *("batch", "flight", "inflight", "concurrency", "concurrent", "active", "running"),
    *("load", "utilization", "utilisation", "occupancy", "parallel", "connections"),
}
_CONSTANT: Final = 1e-9  # values that differ by a smaller share are one value


def role_of(name: str) -> Role:
    """Return the role that a name's words say; a size of some kind when they say none."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    if words & _WAIT:
        return "wait"
    return "load" if words & _LOAD else "work"


@dataclass(frozen=True, slots=True)
class Choice:
    """The covariates of one stage's regression.

    Attributes:
        names: [7] the covariate of each slot, None for an empty one.
        scales: [7] a typical value of each, so that terms are of the order of 1.
        offered: all covariates that there were to choose from.
    """

    names: tuple[str | None, ...]
    scales: tuple[float, ...]
    offered: tuple[str, ...]


def choose(names: Sequence[str], covariate: Floats, ms: Floats) -> Choice:
    """Fill the slots from covariate [N, C] and ms [N], the strongest of each role first.

    Strength is the rank correlation with the latency; a constant covariate comes last, but it
    keeps its slot where there is room: it may vary tomorrow.
    """
    strength = [_strength(covariate[:, c], ms) for c in range(len(names))]
    ranked = sorted(range(len(names)), key=lambda c: (-strength[c], names[c]))
    by_role = {role: [c for c in ranked if role_of(names[c]) == role] for role in set(SLOTS)}
    chosen = [by_role[role].pop(0) if by_role[role] else None for role in SLOTS]
    return Choice(
        names=tuple(None if c is None else names[c] for c in chosen),
        scales=tuple(1.0 if c is None else _scale(covariate[:, c]) for c in chosen),
        offered=tuple(sorted(names)),
    )


def _strength(x: Floats, ms: Floats) -> float:
    """Return the absolute rank correlation, -1 where x is constant or hardly ever there."""
    there = np.isfinite(x)
    if there.sum() < 10 or np.ptp(x[there]) <= _CONSTANT * np.abs(x[there]).max():
        return -1.0
    ranks = [np.argsort(np.argsort(v[there], kind="stable")).astype(np.float64) for v in (x, ms)]
    return float(abs(np.corrcoef(ranks[0], ranks[1])[0, 1]))


def _scale(x: Floats) -> float:
    positive = x[np.isfinite(x) & (x > 0)]
    return float(np.median(positive)) if len(positive) else 1.0
