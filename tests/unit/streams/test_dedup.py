"""Redelivered records are found by their request id."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.dedup import WAYS, Dedup


def hashes(*numbers: int) -> NDArray[np.uint64]:
    """Return hashes that fall into different sets."""
    return np.array(numbers, np.uint64) << np.uint64(48)


def test_an_id_is_fresh_once() -> None:
    """The first of equal ids is fresh, within a batch and over batches."""
    dedup = Dedup()
    assert dedup.fresh(hashes(1, 2, 1)).tolist() == [True, True, False]
    assert dedup.fresh(hashes(2, 3)).tolist() == [False, True]


def test_a_batch_of_known_ids_has_nothing_fresh() -> None:
    """A batch that was delivered before is all duplicates, however often it comes."""
    dedup = Dedup()
    dedup.fresh(hashes(1, 2))
    assert dedup.fresh(hashes(1, 2)).tolist() == [False, False]
    assert dedup.fresh(hashes(2)).tolist() == [False]


def test_no_ids_are_no_error() -> None:
    """An empty batch is fine."""
    assert Dedup().fresh(hashes()).tolist() == []


def test_an_old_id_makes_room_for_younger_ones_of_its_set() -> None:
    """An id is forgotten once as many younger ones as a set holds fell into the same set."""
    dedup = Dedup()
    same_set = np.arange(1, WAYS + 2, dtype=np.uint64)
    assert dedup.fresh(same_set).all()
    assert dedup.fresh(same_set[1:]).tolist() == [False] * WAYS
    assert dedup.fresh(same_set[:1]).tolist() == [True]
