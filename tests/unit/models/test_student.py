"""Quantiles of Student's t."""

from __future__ import annotations

import pytest

from tailbudget.models.student import t_quantile


@pytest.mark.parametrize(
    ("confidence", "freedom", "t"),
    [
        # Abramowitz and Stegun, Handbook of Mathematical Functions (1964), table 26.10.
        (0.95, 1, 12.706),
        (0.95, 2, 4.303),
        (0.95, 3, 3.182),
        (0.95, 4, 2.776),
        (0.95, 5, 2.571),
        (0.95, 10, 2.228),
        (0.95, 30, 2.042),
        (0.95, 120, 1.980),
        (0.5, 5, 0.727),
        (0.99, 5, 4.032),
        (0.999, 3, 12.924),
    ],
)
def test_quantiles_are_those_of_the_tables(confidence: float, freedom: int, t: float) -> None:
    """Printed tables agree to their last digit."""
    assert t_quantile(confidence, freedom) == pytest.approx(t, abs=6e-4)


def test_many_degrees_are_the_normal() -> None:
    """With a million degrees of freedom it is the normal deviate."""
    assert t_quantile(0.95, 10**6) == pytest.approx(1.959964, abs=1e-5)


@pytest.mark.parametrize(("confidence", "freedom"), [(0.95, 0), (0.0, 5), (1.0, 5)])
def test_what_has_no_quantile_is_refused(confidence: float, freedom: int) -> None:
    """No degree of freedom, and certainty, are errors that repeat what was given."""
    with pytest.raises(ValueError, match=f"{confidence}, {freedom}"):
        t_quantile(confidence, freedom)
