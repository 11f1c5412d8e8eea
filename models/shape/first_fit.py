"""The first fit of keys, from the rows that were held until there were enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.shape.solve import solve

Floats = NDArray[np.float64]

BOUND: Final = 3.0
"""Residuals beyond so many standard deviations count as that many: bounded influence."""
LEAST_SPREAD: Final = 0.02
_ROUNDS: Final = 10
_SWEEPS: Final = 60
_MAD: Final = 1.4826  # standard deviation of a normal variable by its median absolute deviation
_FLOOR: Final = 0.02  # a prediction is at least this share of the median latency


@dataclass(frozen=True, slots=True)
class FirstFits:
    """Coefficients, and the residuals' logarithms, of K keys.

    Attributes:
        beta: [K, D] milliseconds a unit of each term.
        middle: [K] median of log(measured by predicted).
        spread: [K] their robust standard deviation.
    """

    beta: Floats
    middle: Floats
    spread: Floats


def first_fits(rows: Sequence[tuple[Floats, Floats]], prior: tuple[Floats, Floats]) -> FirstFits:
    """Fit relative errors of several keys by reweighting; solved together, they cost like few.

    Args:
        rows: of each key its terms [N, D] and the measured milliseconds [N], positive.
        prior: gram [K, D, D] and moment [K, D] of evidence from elsewhere, zero for none.
    """
    expected = [ms.copy() for _, ms in rows]
    beta = np.zeros_like(prior[1])
    for round_ in range(_ROUNDS):
        gram, moment = prior[0].copy(), prior[1].copy()
        for k, (term, ms) in enumerate(rows):
            relative = term / expected[k][:, None]
            gram[k] += relative.T @ relative
            moment[k] += relative.T @ (_target(ms, expected[k], bound=round_ > 1) / expected[k])
        beta = solve(gram, moment, beta, _SWEEPS)
        expected = [
            np.maximum(term @ mine, _FLOOR * np.median(ms))
            for (term, ms), mine in zip(rows, beta, strict=True)
        ]
    left = [robust(np.log(ms / mine)) for (_, ms), mine in zip(rows, expected, strict=True)]
    middle, spread = np.array(left).T
    return FirstFits(beta, middle, spread)


def _target(ms: Floats, expected: Floats, *, bound: bool) -> Floats:
    """Return what is to be predicted: the measured, those far out moved to the bound."""
    if not bound:
        return ms
    log = np.log(ms / expected)
    target: Floats = expected * np.exp(bounded(log, *robust(log)))
    return target


def robust(values: Floats) -> tuple[float, float]:
    """Return the median and the standard deviation by the median absolute deviation."""
    middle = float(np.median(values))
    return middle, max(LEAST_SPREAD, _MAD * float(np.median(np.abs(values - middle))))


def bounded(log: Floats, middle: Floats | float, spread: Floats | float) -> Floats:
    """Return residuals with those far out moved to the bound."""
    result: Floats = np.clip(log, middle - BOUND * spread, middle + BOUND * spread)
    return result
