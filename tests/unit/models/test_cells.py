"""Dense counting, by either layout, equals counting one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tailbudget.models.cells import Cells, add_cells, count_keys, count_slots, slots_of
from tailbudget.models.sketch import BUCKETS, bucket_index


def _values(seed: int, cells: int, n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    return random.integers(0, cells, n), np.round(2.0 ** random.uniform(-14, 22, n), 3)


def _expected(cell: Any, ms: Any, weights: Any) -> list[tuple[int, int, int]]:
    counts: dict[tuple[int, int], int] = {}
    for key in zip(cell.tolist(), bucket_index(ms).tolist(), weights.tolist(), strict=True):
        counts[key[:2]] = counts.get(key[:2], 0) + key[2]
    return [(*key, count) for key, count in sorted(counts.items())]


def _rows(cells: Cells) -> list[tuple[int, int, int]]:
    columns = cells.cell.tolist(), cells.bucket.tolist(), cells.count.tolist()
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("cells", "n"), [(1, 1), (3, 500), (40, 200), (7, 0)])
def test_both_layouts_count_alike(cells: int, n: int, weighted: bool) -> None:  # noqa: FBT001
    """Counters between the extremes, or values in order: the same sparse counts."""
    cell, ms = _values(n, cells, n)
    weights = np.arange(n) % 5 + 1 if weighted else np.ones(n, np.int64)
    given = weights if weighted else None
    expected = _expected(cell, ms, weights)
    keys = cell * BUCKETS + bucket_index(ms)
    assert _rows(count_keys(keys, given, cells)) == expected
    low, high = np.full(cells, np.inf), np.full(cells, -np.inf)
    np.minimum.at(low, cell, ms)
    np.maximum.at(high, cell, ms)
    slots = slots_of(np.bincount(cell, minlength=cells), low, high)
    found = count_slots(slots.zero[cell] + bucket_index(ms), given, slots)
    assert _rows(found) == expected
    assert [column.dtype for column in (found.cell, found.bucket, found.count)] == [
        np.int32,
        np.int16,
        np.int64,
    ]
    twice = Cells(*(np.concatenate([a, a]) for a in (found.cell, found.bucket, found.count)))
    doubled = [(*key, 2 * count) for *key, count in expected]
    assert _rows(add_cells(twice, slots.zero, slots)) == doubled


def test_few_values_far_apart_are_not_worth_a_dense_array() -> None:
    """Thousands of sketches that span the whole range are put in order instead."""
    n = np.full(2000, 2)
    wide = slots_of(n, np.full(2000, 0.0), np.full(2000, 1e6))
    assert not wide.worthwhile(4000)
    assert slots_of(n, np.full(2000, 1.0), np.full(2000, 1.2)).worthwhile(4000)
