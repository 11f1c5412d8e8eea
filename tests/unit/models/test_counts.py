"""Counters alone say what a breach hangs on, as exactly as the whole window does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.models.counts import counts_of, sum_counts
from tailbudget.models.snapshot import snapshot
from tailbudget.models.window import ServiceWindow, Window
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary

PANE_NS = 10_000_000_000
Build = Callable[..., Summary]


@pytest.mark.parametrize("failed", [[], [900.0], [float("nan"), 100.0, 700.0]])
def test_bad_requests_are_those_of_the_snapshot(summary_of: Build, failed: list[float]) -> None:
    """Slower and failed ones, whether or not it is known how long a failure took."""
    window = Window(3 * PANE_NS, PANE_NS)
    for pane in range(3):
        totals = [100.0 + 150 * k + pane for k in range(5)]
        part = summary_of(totals, failed=failed, thresholds_ms=(300.0,), ts_ns=pane * PANE_NS)
        window.add(part)
    rows = snapshot(window.total(), SloTarget(p99_ms=300.0))
    (row,) = (row for row in rows if row.percentile == "p99" and row.basis == "all")
    assert (window.counts().requests, window.counts().bad(300.0)) == (row.n, row.over)
    assert window.counts().bad(301.0) is None


def test_parts_add_up_over_what_all_of_them_counted(summary_of: Build) -> None:
    """A threshold that a part did not count is not known of the sum."""
    both = summary_of([100.0, 400.0], thresholds_ms=(200.0, 300.0))
    one = summary_of([100.0, 400.0, 500.0], thresholds_ms=(200.0,))
    total = sum_counts([None, counts_of(both, slice(0, 1)), counts_of(one, slice(0, 1))])
    assert (total.requests, total.over) == (5, {200.0: 3})
    assert sum_counts([]).requests == 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.integers(0, 6))
def test_a_shorter_span_is_what_a_shorter_window_has(
    summary_of: Build, panes: list[int], since: int
) -> None:
    """Leaving older panes out for a while is exact, and changes nothing."""
    long, short = ServiceWindow(6 * PANE_NS, PANE_NS), ServiceWindow(6 * PANE_NS, PANE_NS)
    for number, pane in enumerate(panes):
        part = summary_of([50.0 + number], thresholds_ms=(60.0,), ts_ns=pane * PANE_NS)
        long.add(part)
        if pane >= since:
            short.add(part)
    before, want = long.total(), short._service.total(since * PANE_NS)
    got = long.total_since(since * PANE_NS)
    assert _told(got) == _told(want)
    assert _told(long.total()) == _told(before)


def _told(total: Summary) -> list[Any]:
    arrays = (total.requests, total.over, total.n, total.sum_ns, total.bucket, total.count)
    return [array.tolist() for array in arrays] + [total.min_ms.tolist(), total.max_ms.tolist()]
