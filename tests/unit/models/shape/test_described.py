"""A regression in words predicts what the regression predicts."""

from __future__ import annotations

import numpy as np
import pytest

from tailbudget.models.shape.described import described
from tailbudget.models.shape.roles import Choice
from tailbudget.models.shape.terms import TERMS, terms

NAMES = ("input_tokens", "candidates", None, "batch_size", None, "waiting", None)
SCALES = (500.0, 4.0, 1.0, 2.0, 1.0, 3.0, 1.0)
CHOICE = Choice(NAMES, SCALES, ())


def test_terms_in_their_own_units_add_up_to_the_prediction() -> None:
    """Products and squares of the covariates by their coefficients are the milliseconds."""
    random = np.random.default_rng(1)
    used = [
        i for i, term in enumerate(TERMS) if not {"w3", "l2", "q2", "w3²"} & set(term.split("·"))
    ]
    beta = np.zeros(len(TERMS))
    beta[used] = random.random(len(used))
    row = {"input_tokens": 700.0, "candidates": 3.0, "batch_size": 5.0, "waiting": 2.0}
    slots = [0.0 if n is None else row[n] / s for n, s in zip(NAMES, SCALES, strict=True)]
    expected = float((terms(np.array([slots])) @ beta)[0])
    said = 0.0
    for text, coefficient in described(CHOICE, beta):
        value = coefficient
        for factor in text.split("·"):
            name = factor.removesuffix("²")
            power = 2 if factor.endswith("²") else 1
            value = value if name == "1" else value * row[name] ** power
        said += value
    assert said == pytest.approx(expected)


def test_only_terms_that_count_are_named() -> None:
    """A constant and a slope are two terms."""
    beta = np.zeros(len(TERMS))
    beta[TERMS.index("1·1")], beta[TERMS.index("w1·l1")] = 5.0, 0.5
    assert described(CHOICE, beta) == [("1", 5.0), ("input_tokens·batch_size", 0.0005)]
