"""Which stages hold others? Adding a container to its parts would count the time twice.

A container is the sum of its parts, to the resolution of the sketch, in nearly every row; or it
encloses them: it is nearly never shorter than they are together, also when requests are slow, and
grows one for one with each of them. The second is asked only where stages take more time together
than there is: two stages one after the other may well follow the same input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tailbudget.models.breakdown import SAME, Breakdown, Flags, Floats

MOST_PARTS: Final = 24
"""Stages, the longest, among which the parts of a container are looked for."""

_STEPS: Final = 20_000  # sums tried for one container
_ONE_FOR_ONE: Final = 0.1  # a clock inside of another moves it by the same time, a slope of 1
_ROWS_A_SLOPE: Final = 10  # Harrell, Regression Modeling Strategies (2015), 4.4: ten to twenty
_KNOWN: Final = 0.5  # a stage whose parts are less than this of it is no container of them


@dataclass(frozen=True, slots=True)
class Container:
    """A stage that holds others.

    Attributes:
        stage: the container.
        parts: the stages directly in it, as far as the times tell.
        exact: it is their sum; else it also has time of its own.
    """

    stage: str
    parts: tuple[str, ...]
    exact: bool


def sums_of_others(rows: Breakdown, *, crowded: bool) -> tuple[Container, ...]:
    """Return the stages that are sums of others, on one level or several.

    Args:
        rows: the requests.
        crowded: stages take more time together than there is. Otherwise only requests that
            differ can show that a sum is no accident.
    """
    found = []
    for stage in rows.names:
        if crowded or differ(rows, stage):
            parts = _best_sum(rows, stage)
            if parts:
                found.append(Container(stage, parts, exact=True))
    return tuple(found)


def encloser(rows: Breakdown, leaves: tuple[str, ...]) -> Container | None:
    """Return the longest of these stages that encloses others of them; None when none does."""
    if not rows.requests:
        return None
    means = dict(zip(leaves, _means(rows, leaves).tolist(), strict=True))
    for stage in sorted(leaves, key=lambda name: (-means[name], name)):
        parts = _inside(rows, stage, tuple(name for name in leaves if name != stage))
        if parts:
            return Container(stage, parts, exact=False)
    return None


def _means(rows: Breakdown, names: tuple[str, ...]) -> Floats:
    means: Floats = rows.weight @ rows.of(names) / max(float(rows.weight.sum()), 1.0)
    return means


def differ(rows: Breakdown, stage: str) -> bool:
    """Tell whether requests differ in a stage by enough to show that a sum is no accident."""
    ms = rows.of((stage,))[:, 0]
    mean = np.average(ms, weights=rows.weight)
    spread = np.average((ms - mean) ** 2, weights=rows.weight) ** 0.5
    return rows.requests and bool(spread > SAME * mean)


def _shorter(rows: Breakdown, stage: str, others: tuple[str, ...]) -> tuple[str, ...]:
    """Return those that nearly never take longer than the stage, where there is one."""
    whole = rows.of((stage,))[:, 0]
    there = whole > 0
    fits = [rows.of((name,))[:, 0] <= whole * (1 + SAME) for name in others]
    means = _means(rows, others)
    return tuple(
        name
        for name, fit, mean in zip(others, fits, means.tolist(), strict=True)
        if mean > 0 and rows.nearly_every(fit, there)
    )


def _best_sum(rows: Breakdown, stage: str) -> tuple[str, ...]:
    """Return the stages whose sum is this one in nearly every row; the closest such sum."""
    others = _shorter(rows, stage, tuple(name for name in rows.names if name != stage))
    whole = rows.of((stage,))[:, 0]
    there: Flags = whole > 0
    if len(others) < 2 or not there.any():
        return ()
    # The few rows in which a container has time of its own are slow: they would spoil the means.
    usual = there & (whole <= np.median(whole[there]))
    weight = rows.weight[usual] / rows.weight[usual].sum()
    means, target = weight @ rows.of(others)[usual], float(weight @ whole[usual])
    # A part that is shorter than the resolution can't be told from none.
    told = np.flatnonzero(means > SAME * target).tolist()
    longest = sorted(told, key=lambda at: (-means[at], others[at]))[:MOST_PARTS]
    best: tuple[str, ...] = ()
    least = np.inf
    for chosen in _sums(means[longest], target):
        parts = tuple(sorted(others[longest[at]] for at in chosen))
        off = np.abs(rows.of(parts).sum(axis=1) - whole)
        error = float(np.average(off[there], weights=rows.weight[there]))
        if error < least and rows.usually(off <= SAME * whole, there):
            best, least = parts, error
    return best


def _sums(values: Floats, target: float) -> Iterator[tuple[int, ...]]:
    """Yield the sets of two or more of the descending values that add up to the target."""
    ms = values.tolist()
    left = [*np.cumsum(values[::-1])[::-1].tolist(), 0.0]  # all from here on
    low, high = target * (1 - SAME), target * (1 + SAME)
    stack: list[tuple[tuple[int, ...], float, int]] = [((), 0.0, 0)]
    for _ in range(_STEPS):
        if not stack:
            return
        chosen, have, at = stack.pop()
        if at == len(ms):
            if len(chosen) > 1 and low <= have <= high:
                yield chosen
        elif have + left[at] >= low:
            stack.append((chosen, have, at + 1))
            if have + ms[at] <= high:
                stack.append(((*chosen, at), have + ms[at], at + 1))


def _inside(rows: Breakdown, stage: str, others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stages that this one encloses; none unless they are most of it."""
    shorter = _shorter(rows, stage, others)
    whole = rows.of((stage,))[:, 0]
    there: Flags = whole > 0
    n = int(there.sum())
    if not shorter or n < _ROWS_A_SLOPE * (len(shorter) + 1):
        return ()
    slope, error = _slopes(rows.of(shorter)[there], whole[there])
    near = np.abs(slope - 1) <= np.maximum(_ONE_FOR_ONE, 2 * error)
    parts = tuple(np.array(shorter)[near & (slope > 2 * error)].tolist())
    inside = rows.of(parts).sum(axis=1)
    known = float(inside[there].sum()) >= _KNOWN * float(whole[there].sum())
    fits = rows.nearly_every(inside <= whole * (1 + SAME), there)
    return parts if parts and known and fits else ()


def _slopes(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the slopes of y on the columns of x, all at once, and their standard errors.

    Seber and Lee, Linear Regression Analysis (2003), 3.2 to 3.4. Columns that do not vary, or
    repeat others, have a slope of 0 or share one.
    """
    x, y = x - x.mean(axis=0), y - y.mean()
    inverse = np.linalg.pinv(x.T @ x, hermitian=True)
    slope: Floats = inverse @ (x.T @ y)
    left = y - x @ slope
    variance = float(left @ left) / max(len(y) - x.shape[1] - 1, 1)
    return slope, np.sqrt(np.maximum(variance * np.diag(inverse), 0.0))
