"""A fitted regression in words: its terms by the names of covariates, in their own units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.shape.roles import Choice
from tailbudget.models.shape.terms import TERMS

_SLOT: Final = {"w1": 0, "w2": 1, "w3": 2, "l1": 3, "l2": 4, "q1": 5, "q2": 6}
_LEAST: Final = 1e-12


def described(choice: Choice, beta: NDArray[np.float64]) -> list[tuple[str, float]]:
    """Return the terms that count with their coefficients, milliseconds a unit of each.

    Args:
        choice: covariates of the stage, and what they were divided by.
        beta: [42] coefficients of `TERMS`, not negative.
    """
    least = _LEAST * max(float(beta.max(initial=0.0)), 1.0)
    return [
        _term(text, choice, float(value))
        for text, value in zip(TERMS, beta.tolist(), strict=True)
        if value > least
    ]


def _term(text: str, choice: Choice, value: float) -> tuple[str, float]:
    names = []
    for slot, square in _factors(text):
        power = 2 if square else 1
        value /= choice.scales[slot] ** power
        names.append((choice.names[slot] or "?") + ("²" if square else ""))
    return "·".join(names) or "1", value


def _factors(text: str) -> Iterator[tuple[int, bool]]:
    """Yield slot and whether it is squared, of each factor of a term's name."""
    for factor in text.split("·"):
        if factor != "1":
            yield _SLOT[factor.removesuffix("²")], factor.endswith("²")
