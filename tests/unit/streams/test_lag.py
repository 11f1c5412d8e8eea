"""Lag: what is unknown stays unknown, and nothing is less than nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.streams.lag import PartitionLag, lag, total

OFFSETS = st.none() | st.integers(min_value=-1001, max_value=2**40)


@pytest.mark.parametrize(
    ("committed", "end", "expected"),
    [
        (None, 3083, None),
        (-1001, 3083, None),
        (4390, 4388, 0),
        (3083, 3083, 0),
        (0, 3083, 3083),
        (5, None, None),
        (5, -1, None),
        (0, 0, 0),
    ],
)
def test_lag(committed: int | None, end: int | None, expected: int | None) -> None:
    """No commit is unknown, never the end or one more; an end read too early is no lag."""
    assert lag(committed, end) == expected


@given(OFFSETS, OFFSETS)
def test_lag_is_unknown_or_not_negative(committed: int | None, end: int | None) -> None:
    """Whatever the broker says, lag is unknown or at least 0, and at most the end."""
    found = lag(committed, end)
    assert found is None or (end is not None and 0 <= found <= end)


def test_one_unknown_partition_makes_the_total_unknown() -> None:
    """The total is a number only when every partition's is."""
    known = [PartitionLag("t", 0, 5, 8), PartitionLag("t", 1, 9, 9)]
    assert total(known) == 3
    assert total([*known, PartitionLag("t", 2, None, 4)]) is None
    assert total([]) == 0
