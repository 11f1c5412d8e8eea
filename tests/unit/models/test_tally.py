"""Counting good and bad events: exactly, by cohort, and saying what nobody knows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from requests_of import T0_NS, columns_of, summary_of
from slo_events import SECOND_NS, tally_of

from tailbudget.models.select import collapse
from tailbudget.models.slo_counts import SloCounts
from tailbudget.models.tally import as_slices, count, merge_tallies, tally, without
from tailbudget.schemas.objectives import Correction, Objective
from tailbudget.schemas.records import Outcome
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.tally import Count

PANE_NS = 10 * SECOND_NS
ALL = Objective("chat", "all", Fraction(99, 100), threshold_ms=500.0)


def summary(thresholds_ms: tuple[float, ...] = (500.0,)) -> Summary:
    """Return 30 requests of 490 to 519 ms, a second apart; the first one failed."""
    times = [T0_NS + i * SECOND_NS for i in range(30)]
    columns = columns_of([490.0 + i for i in range(30)], ts_ns=times)
    columns.outcome[0] = Outcome.ERROR
    return summary_of(columns, thresholds_ms=thresholds_ms)


def test_bad_is_slower_or_failed_exactly() -> None:
    """A request at the threshold is good; the failed one is bad though it was fast."""
    counted = tally(summary(), ALL, PANE_NS)
    assert counted.start_ns.tolist() == [T0_NS + i * PANE_NS for i in range(3)]
    assert counted.total.tolist() == [10, 10, 10]
    assert counted.bad.tolist() == [1, 9, 10]  # 500 ms is the tenth after the first


def test_without_a_threshold_only_failures_are_bad() -> None:
    """An objective for errors does not look at latency."""
    errors = Objective("chat", "errors", Fraction(99, 100))
    assert count(tally(summary(), errors, PANE_NS)) == Count(30, 1, 0)


def test_what_was_not_counted_is_unknown() -> None:
    """Where the threshold was not counted when the requests came, nobody can say."""
    assert count(tally(summary((400.0,)), ALL, PANE_NS)) == Count(0, 0, 30)


def test_a_cohort_counts_its_own_requests_only() -> None:
    """Requests of another route are none of its business; those of nobody knows where may be."""
    mine = Objective("chat", "a", Fraction(99, 100), 500.0, cohort=(("route", "a"),))
    other = Objective("chat", "b", Fraction(99, 100), 500.0, cohort=(("route", "b"),))
    assert count(tally(summary(), mine, PANE_NS)) == Count(30, 20, 0)
    assert count(tally(summary(), other, PANE_NS)) == Count(0, 0, 0)
    assert count(tally(collapse(summary()), other, PANE_NS)) == Count(0, 0, 30)


def test_slices_are_good_or_bad_as_a_whole() -> None:
    """A slice is good when 95 % of its requests are; one without requests is no event."""
    minutes = tally_of(((0, 100, 5), (60, 100, 6), (180, 1, 0)), slice_s=60)
    slices = as_slices(minutes, Fraction(95, 100))
    assert slices.start_ns.tolist() == [T0_NS + m * 60 * SECOND_NS for m in (0, 1, 3)]
    assert (slices.total.tolist(), slices.bad.tolist()) == ([1, 1, 1], [0, 1, 0])
    unsure = as_slices(tally_of(((0, 100, 3),), slice_s=60, unknown=10), Fraction(95, 100))
    assert count(unsure) == Count(0, 0, 1)


def test_corrections_leave_slices_out() -> None:
    """Every slice that a maintenance touches is left out, and no other."""
    minutes = tally_of(((0, 10, 1), (60, 10, 2), (120, 10, 3)), slice_s=60)
    span = Correction(T0_NS + 60 * SECOND_NS, T0_NS + 61 * SECOND_NS, "upgrade")
    assert without(minutes, [span]).bad.tolist() == [1, 3]


def test_the_ring_forgets_what_is_too_old() -> None:
    """It holds its newest slices, amends them, and counts what came too late for it."""
    ring = SloCounts(SECOND_NS, 5)
    ring.add(tally_of((second, 1, 0) for second in range(4)))
    ring.add(tally_of(((2, 0, 1), (6, 1, 1))))
    now_ns = T0_NS + 6 * SECOND_NS
    assert ring.last(now_ns, 100 * SECOND_NS) == Count(3, 2)
    assert ring.last(now_ns, SECOND_NS) == Count(1, 1)
    ring.add(tally_of(((1, 7, 7),)))
    assert ring.too_old == 7
    assert ring.newest_ns == T0_NS + 7 * SECOND_NS
    ring.add(tally_of(((1000, 1, 0),)))
    assert ring.last(T0_NS + 1000 * SECOND_NS, 5 * SECOND_NS) == Count(1, 0)


def test_a_window_asked_for_earlier_sees_no_later_events() -> None:
    """Fast sources run ahead of event time; a window ends where it is asked to."""
    ring = SloCounts(SECOND_NS, 100)
    ring.add(tally_of((second, 1, 0) for second in range(50)))
    assert ring.last(T0_NS + 9 * SECOND_NS, 5 * SECOND_NS) == Count(5, 0)
    assert ring.newest_before(T0_NS + 9 * SECOND_NS) == T0_NS + 10 * SECOND_NS
    assert ring.last(T0_NS + 60 * SECOND_NS, 5 * SECOND_NS) == Count()


def test_slices_that_do_not_fit_are_refused() -> None:
    """Minutes cannot be put into slices of 45 s."""
    with pytest.raises(ValueError, match="do not fit"):
        merge_tallies([tally_of(((0, 1, 0),), slice_s=60)], 45 * SECOND_NS)
    assert np.array_equal(merge_tallies([], 1).start_ns, [])
