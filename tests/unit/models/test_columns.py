"""Joining decoded micro-batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from requests_of import columns_of

from tailbudget.models.columns import concat, relabel, take


def test_rows_stand_in_order_with_what_each_part_lacks_missing() -> None:
    """A stage of one part alone is NaN in the rows of the other; cohorts keep their rows."""
    first = columns_of([1.0, 2.0], ids=[1, 2])
    second = replace(columns_of([3.0], ids=[3]), stages=("fetch",), cohorts=((("route", "b"),),))
    joined = concat([first, second])
    assert joined.total_ms.tolist() == [1.0, 2.0, 3.0]
    assert joined.stages == ("fetch", "model")
    assert np.isnan(joined.stage_ms[0, :2]).all()
    assert joined.stage_ms[0, 2] == 1.5
    assert [joined.cohorts[c] for c in joined.cohort] == [(("route", "a"),)] * 2 + [
        (("route", "b"),)
    ]
    assert [joined.ids[i] for i in range(3)] == ["r1", "r2", "r3"]


def test_weights_are_ones_where_a_part_has_none() -> None:
    """A part without weights counts each row once beside a part with them."""
    plain = columns_of([1.0], ids=[1])
    sampled = replace(columns_of([1.0], ids=[2]), weight=np.array([10]))
    joined = concat([plain, sampled])
    assert joined.weight is not None
    assert joined.weight.tolist() == [1, 10]


def test_take_keeps_chosen_rows() -> None:
    """Rows, their ids and their cells stay together."""
    picked = take(columns_of([1.0, 2.0, 3.0], ids=[1, 2, 3]), np.array([True, False, True]))
    assert picked.total_ms.tolist() == [1.0, 3.0]
    assert list(picked.ids) == ["r1", "r3"]
    assert picked.covariate.tolist() == [[3.0, 9.0]]


def test_relabel_joins_equal_names() -> None:
    """Two cohorts that get one name become one."""
    rows = replace(
        columns_of([1.0, 2.0]),
        cohorts=((("route", "a"),), (("route", "b"),)),
        cohort=np.array([0, 1], np.int32),
    )
    other = (("(other)", "(other)"),)
    joined = relabel(rows, [other, other])
    assert joined.cohorts == (other,)
    assert joined.cohort.tolist() == [0, 0]


def test_parts_of_two_services_are_refused() -> None:
    """Rows of different services have no common columns."""
    with pytest.raises(ValueError, match="one service"):
        concat([columns_of([1.0]), columns_of([1.0], service="other")])
