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
    dedup = Dedup(200_000)
    assert dedup.fresh(hashes(1, 2, 1)).tolist() == [True, True, False]
    assert dedup.fresh(hashes(2, 3)).tolist() == [False, True]


def test_a_batch_of_known_ids_has_nothing_fresh() -> None:
    """A batch that was delivered before is all duplicates, however often it comes."""
    dedup = Dedup(200_000)
    dedup.fresh(hashes(1, 2))
    assert dedup.fresh(hashes(1, 2)).tolist() == [False, False]
    assert dedup.fresh(hashes(2)).tolist() == [False]


def test_no_ids_are_no_error() -> None:
    """An empty batch is fine."""
    assert Dedup(200_000).fresh(hashes()).tolist() == []


def test_an_old_id_makes_room_for_younger_ones_of_its_set() -> None:
    """An id is forgotten once as many younger ones as a set holds fell into the same set."""
    dedup = Dedup(200_000)
    same_set = np.arange(1, WAYS + 2, dtype=np.uint64)
    assert dedup.fresh(same_set).all()
    assert dedup.fresh(same_set[1:]).tolist() == [False] * WAYS
    assert dedup.fresh(same_set[:1]).tolist() == [True]


def test_a_capacity_of_nothing_remembers_nothing() -> None:
    """With 0 every record is fresh, repeated ones too."""
    dedup = Dedup(0)
    assert dedup.fresh(hashes(1, 1)).tolist() == [True, True]


def test_ids_within_the_capacity_are_remembered() -> None:
    """Of 20,000 ids in a table for 60,000, as good as all are known when they come again."""
    ids = np.random.default_rng(1).integers(1, 2**63, 20_000).astype(np.uint64)
    dedup = Dedup(60_000)
    assert dedup.fresh(ids).all()
    assert dedup.fresh(ids).mean() < 0.001
