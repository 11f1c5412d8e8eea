"""Tallies merge: in any order and over any cut, and budgets follow from the merged counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slo_events import SECOND_NS, T0_NS, tally_of

from tailbudget.models.budget import budgets
from tailbudget.models.slo_counts import SloCounts
from tailbudget.models.tally import as_slices, between, count, merge_tallies, with_newer
from tailbudget.schemas.objectives import Objective, Period
from tailbudget.schemas.tally import Tally

MINUTE_NS = 60 * SECOND_NS
UNTIMED = settings(deadline=None)
"""Machines that run tests are busy."""
SLO = Objective("chat", "latency", Fraction(99, 100), 500.0, period=Period(1, "h"))


@st.composite
def events(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Return (second, total, bad) rows of two hours."""
    rows = draw(st.lists(st.tuples(st.integers(0, 7199), st.integers(1, 50)), max_size=30))
    return [(second, total, draw(st.integers(0, total))) for second, total in rows]


def same(first: Tally, second: Tally) -> bool:
    """Return whether two tallies hold the same."""
    names = ("start_ns", "total", "bad", "unknown")
    return all(np.array_equal(getattr(first, n), getattr(second, n)) for n in names)


@UNTIMED
@given(events(), events(), events())
def test_merging_is_commutative_and_associative(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]], c: list[tuple[int, int, int]]
) -> None:
    """Parts merge in any order, and into coarser slices before or after."""
    x, y, z = (tally_of(rows) for rows in (a, b, c))
    left = merge_tallies([merge_tallies([x, y], SECOND_NS), z], MINUTE_NS)
    right = merge_tallies([merge_tallies([z, y], MINUTE_NS), x], MINUTE_NS)
    assert same(left, right)
    assert same(left, tally_of([*c, *b, *a], slice_s=60))


@UNTIMED
@given(events(), events(), st.integers(0, 7200), st.integers(1, 7200))
def test_the_window_of_a_merge_is_the_merge_of_the_windows(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]], end_s: int, length_s: int
) -> None:
    """Whether cut before or after, pure or in the ring, a window holds the same events."""
    x, y = tally_of(a), tally_of(b)
    end_ns = T0_NS + end_s * SECOND_NS
    start_ns = end_ns - length_s * SECOND_NS
    whole = between(merge_tallies([x, y], SECOND_NS), start_ns, end_ns)
    parts = [between(part, start_ns, end_ns) for part in (x, y)]
    assert same(whole, merge_tallies(parts, SECOND_NS))
    ring = SloCounts(SECOND_NS, 14_400)
    ring.add(x)
    ring.add(y)
    assert ring.last(end_ns - 1, length_s * SECOND_NS) == count(whole)
    assert same(ring.between(start_ns, end_ns), whole)


@UNTIMED
@given(events(), events())
def test_newer_events_on_top_are_a_merge(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]]
) -> None:
    """However old the newer ones are, and where a slice of both is shared."""
    long, newer = tally_of(a, slice_s=60), tally_of(b)
    assert same(with_newer(long, newer), merge_tallies([long, newer], MINUTE_NS))


@UNTIMED
@given(events(), events(), st.integers(60, 7200))
def test_the_budget_of_a_merge_counts_what_its_parts_count(
    a: list[tuple[int, int, int]], b: list[tuple[int, int, int]], now_s: int
) -> None:
    """Events add up; in a whole period less than nothing is left where the SLO is missed."""
    now_ns = T0_NS + now_s * SECOND_NS
    x, y = tally_of(a, slice_s=60), tally_of(b, slice_s=60)
    first, second = (budgets(part, SLO, now_ns).measured for part in (x, y))
    both = budgets(merge_tallies([x, y], MINUTE_NS), SLO, now_ns).measured
    assert both.total == first.total + second.total
    assert both.bad == first.bad + second.bad
    assert both.allowed == pytest.approx(both.total / both.covered_pct)
    if both.covered_pct == 100 and both.total and both.left_pct is not None:
        assert (both.left_pct < -1e-9) == (both.bad * 100 > both.total)


@UNTIMED
@given(events(), st.integers(0, 20))
def test_unknown_events_widen_nothing_else(rows: list[tuple[int, int, int]], unknown: int) -> None:
    """A slice is judged only where no unknown request could tip it."""
    sure = as_slices(tally_of(rows, slice_s=60), Fraction(9, 10))
    unsure = as_slices(tally_of(rows, slice_s=60, unknown=unknown), Fraction(9, 10))
    assert count(sure).unknown == 0
    assert count(unsure).total + count(unsure).unknown == count(sure).total
    assert count(unsure).bad <= count(sure).bad
