"""Order without comparisons equals numpy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest

from tailbudget.models.order import order, run_ranges, run_sizes, run_starts


@pytest.mark.parametrize("upper", [1, 200, 256, 257, 65_536, 65_537, 1 << 24, 1 << 33, 1 << 40])
def test_keys_of_any_width_are_ordered(upper: int) -> None:
    """One, two or more digits of 16 bits: the order is that of a stable sort."""
    keys = np.random.default_rng(upper).integers(0, upper, 999)
    keys[::3] = keys[0]
    keys[1] = upper - 1
    assert order(keys, upper).tolist() == np.argsort(keys, kind="stable").tolist()


def test_runs() -> None:
    """Where runs of equal neighbours begin, and how long they are."""
    values = np.array([4, 4, 7, 1, 1, 1])
    starts = run_starts(values)
    assert starts.tolist() == [0, 2, 3]
    assert run_sizes(starts, 6).tolist() == [2, 1, 3]
    assert run_sizes(run_starts(values[:0]), 0).tolist() == []


def test_ranges_never_cut_a_run() -> None:
    """Runs go together while they fit; one that is too long goes alone."""
    starts = np.array([0, 2, 3, 9, 10])
    assert list(run_ranges(starts, 11, 3)) == [(0, 2), (2, 3), (3, 5)]
    assert list(run_ranges(starts, 11, 100, 2)) == [(0, 2), (2, 4), (4, 5)]
