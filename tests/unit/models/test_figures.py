"""Numbers of sentences are read as numbers, whatever their size."""

from __future__ import annotations

import pytest

from tailbudget.models.figures import figure


@pytest.mark.parametrize(
    ("value", "digits", "said"),
    [
        (0.123456, 4, "0.1235"),
        (10.0, 4, "10"),
        (1_368.4, 4, "1,368"),
        (9_999.6, 4, "10,000"),
        (60_000.0, 4, "60,000"),
        (-12_345.6, 4, "-12,346"),
        (1_336.0, 3, "1,336"),
        (2_500_000.0, 6, "2,500,000"),
    ],
)
def test_a_large_number_is_no_power_of_ten(value: float, digits: int, said: str) -> None:
    """Small ones have the digits that are asked for, large ones all before the point."""
    assert figure(value, digits) == said
