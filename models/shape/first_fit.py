"""The first fit of a key, from the rows that were held until there were enough."""

from __future__ import annotations

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
class FirstFit:
    """Coefficients, and the residuals' logarithms.

    Attributes:
        beta: [D] milliseconds a unit of each term.
        middle: median of log(measured by predicted).
        spread: their robust standard deviation.
    """

    beta: Floats
    middle: float
    spread: float


def first_fit(term: Floats, ms: Floats, prior: tuple[Floats, Floats]) -> FirstFit:
    """Fit relative errors by reweighting, from term [N, D] and ms [N].

    Args:
        term: the rows' terms.
        ms: measured milliseconds, positive.
        prior: gram [D, D] and moment [D] of evidence from elsewhere, zero for none.
    """
    expected, target = ms.copy(), ms
    beta = np.zeros(term.shape[1])
    for round_ in range(_ROUNDS):
        relative = term / expected[:, None]
        if round_ > 1:
            log = np.log(ms / expected)
            middle, spread = robust(log)
            target = expected * np.exp(bounded(log, middle, spread))
        gram = relative.T @ relative + prior[0]
        moment = relative.T @ (target / expected) + prior[1]
        beta = solve(gram[None], moment[None], beta[None], _SWEEPS)[0]
        expected = np.maximum(term @ beta, _FLOOR * np.median(ms))
    middle, spread = robust(np.log(ms / expected))
    return FirstFit(beta, middle, spread)


def robust(values: Floats) -> tuple[float, float]:
    """Return the median and the standard deviation by the median absolute deviation."""
    middle = float(np.median(values))
    return middle, max(LEAST_SPREAD, _MAD * float(np.median(np.abs(values - middle))))


def bounded(log: Floats, middle: Floats | float, spread: Floats | float) -> Floats:
    """Return residuals with those far out moved to the bound."""
    result: Floats = np.clip(log, middle - BOUND * spread, middle + BOUND * spread)
    return result
