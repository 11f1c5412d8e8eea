"""A window is the merge of the summaries in it, whatever came and went before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.cohort_split import CohortTotals
from tailbudget.models.merge import merge
from tailbudget.models.select import collapse, empty, split_panes
from tailbudget.models.sketch import BUCKETS
from tailbudget.models.window import Window
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.summary import Profile, Summary

PANE_NS = 10_000_000_000
PANES = 4

Build = Callable[..., Summary]

COHORTS: tuple[Cohort, ...] = tuple(
    (("route", route), ("region", region)) for route in ("a", "b", "c") for region in ("eu", "us")
)

batches = st.tuples(
    st.integers(0, 2**32 - 1),  # seed
    st.lists(st.integers(0, 9), min_size=1, max_size=3),  # panes
    st.sets(st.sampled_from(["queue", "model", "decode", "network"])),  # stages
    st.sampled_from([(103.0,), (103.0, 304.0), (103.0, 304.0, 50.0)]),  # thresholds
)
events = st.lists(st.one_of(batches, st.integers(0, 130)), min_size=1, max_size=12)
"""A batch of requests, or the seconds to advance to."""


def batch(
    build: Build, seed: int, panes: list[int], stages: set[str], slo: tuple[float]
) -> Summary:
    rng = np.random.default_rng(seed)
    n, failed = int(rng.integers(1, 40)), int(rng.integers(0, 4))
    summary = build(
        rng.lognormal(5, 1, n),
        stages={name: rng.lognormal(3, 1, n) for name in stages},
        covariates={"input_tokens": rng.integers(1, 5000, n)},
        failed=[30_000.0] * failed,
        thresholds_ms=slo,
        cohorts=[COHORTS[c] for c in rng.integers(0, len(COHORTS), n + failed)],
        ts_ns=rng.choice(panes, n + failed) * PANE_NS + rng.integers(0, PANE_NS, n + failed),
    )
    rejected = (int(summary.pane_ns[0]), "rejected.not_json")
    return replace(summary, ledger={**summary.ledger, rejected: 1 + seed % 5})


def merged(parts: list[Summary], start_ns: int, first_ns: int | None) -> tuple[Summary, Summary]:
    """Return the in-window panes as one pane: collapsed, and by cohort."""
    kept = []
    for part in parts:
        inside = {at for at in split_panes(part) if first_ns is None or at >= first_ns}
        if inside:
            kept += [one for pane, one in split_panes(part).items() if pane in inside]
    moved = [_moved(part, start_ns) for part in kept]
    everything = merge(moved)
    return collapse(everything), everything


def _moved(pane: Summary, start_ns: int) -> Summary:
    ledger = Counter[tuple[int, str]]()
    for (_, reason), count in pane.ledger.items():
        ledger[start_ns, reason] += count
    return replace(pane, pane_ns=np.full_like(pane.pane_ns, start_ns), ledger=dict(ledger))


def assert_same(got: Summary, want: Summary) -> None:
    for field in fields(Summary):
        if field.name not in ("moments", "sample", "profile"):
            _same(field.name, getattr(got, field.name), getattr(want, field.name))
    for field in fields(Profile):
        _same(field.name, getattr(got.profile, field.name), getattr(want.profile, field.name))


def _same(name: str, got: object, want: object) -> None:
    if isinstance(want, np.ndarray):
        assert np.array_equal(np.asarray(got), want), name
    else:
        assert got == want, name


def assert_same_cohorts(got: CohortTotals, want: Summary) -> None:
    total = want.stages.index("total")
    assert set(got.cohorts) == set(want.cohorts)
    for g, cohort in enumerate(want.cohorts):
        h = got.cohorts.index(cohort)
        counts = np.zeros(BUCKETS, np.int64)
        mine = want.cell == g * len(want.stages) + total
        counts[want.bucket[mine]] = want.count[mine]
        dense = np.zeros(BUCKETS, np.int64)
        dense[got.first_bucket : got.first_bucket + got.counts.shape[1]] = got.counts[h]
        assert np.array_equal(dense, counts)
        assert got.requests[h] == want.requests[g]
        assert got.failed[h] == want.failed[g]
        assert got.min_ms[h] == want.min_ms[g, total]
        assert got.max_ms[h] == want.max_ms[g, total]


@settings(max_examples=60, deadline=None)
@given(events=events)
def test_window_equals_the_merge_of_what_is_in_it(summary_of: Build, events: list[object]) -> None:
    """After any adds and advances the sums equal a merge of the in-window panes, to the bit."""
    window = Window(PANES * PANE_NS, PANE_NS)
    parts, now = [], None
    for event in events:
        if isinstance(event, int):
            now = event * 10**9 if now is None else max(now, event * 10**9)
            window.advance(now)
        else:
            part = batch(summary_of, *event)  # type: ignore[misc]
            window.add(part)
            first = None if now is None else now // PANE_NS * PANE_NS - (PANES - 1) * PANE_NS
            gone = {at for at in split_panes(part) if first is not None and at < first}
            rest = [one for pane, one in split_panes(part).items() if pane not in gone]
            parts.append(merge(rest) if rest else empty(part.service))
    first = None if now is None else now // PANE_NS * PANE_NS - (PANES - 1) * PANE_NS
    if not any(first is None or at >= first for part in parts for at in split_panes(part)):
        assert window.total().requests[0] == 0
        assert window.cohorts().cohorts == ()
        return
    collapsed, by_cohort = merged(parts, window.start_ns, first)
    assert_same(window.total(), collapsed)
    assert_same_cohorts(window.cohorts(), by_cohort)


def test_window_counts_the_open_pane_and_those_before_it(summary_of: Build) -> None:
    """At 12:01:05 a window of 40 s holds the panes from 12:00:30 on."""
    window = Window(4 * PANE_NS, PANE_NS)
    window.add(summary_of([100.0] * 8, ts_ns=[k * PANE_NS for k in range(8)]))
    window.advance(6 * PANE_NS + PANE_NS // 2)
    assert window.start_ns == 3 * PANE_NS
    assert window.end_ns == 8 * PANE_NS
    assert window.total().requests.tolist() == [5]


def test_window_ignores_a_pane_that_has_left_it(summary_of: Build) -> None:
    """Requests and ledger counts of an expired pane change nothing."""
    window = Window(2 * PANE_NS, PANE_NS)
    window.advance(10 * PANE_NS)
    window.add(summary_of([100.0] * 5, ts_ns=0))
    assert window.total().requests.tolist() == [0]
    assert window.total().ledger == {}


def test_pane_of_nothing_but_rejected_records_counts(summary_of: Build) -> None:
    """A pane without requests still brings its ledger, names no stage, and leaves in time."""
    window = Window(2 * PANE_NS, PANE_NS)
    nothing = summary_of([], stages={"queue": []})
    window.add(replace(nothing, ledger={(0, "rejected.not_json"): 3}))
    window.add(replace(nothing, ledger={(PANE_NS, "rejected.not_json"): 4}))
    assert window.total().ledger == {(0, "rejected.not_json"): 7}
    assert window.total().stages == ("total", "failed", "unattributed")
    window.advance(2 * PANE_NS)
    assert window.total().ledger == {(PANE_NS, "rejected.not_json"): 4}


def test_window_does_not_go_back_in_time(summary_of: Build) -> None:
    """An earlier advance neither brings back panes nor lets old ones in."""
    window = Window(2 * PANE_NS, PANE_NS)
    window.advance(10 * PANE_NS)
    window.advance(PANE_NS)
    window.add(summary_of([100.0], ts_ns=PANE_NS))
    assert window.start_ns == 9 * PANE_NS
    assert window.total().requests.tolist() == [0]


def test_maximum_leaves_with_its_pane(summary_of: Build) -> None:
    """The slowest request is forgotten when its pane expires, and so is its stage."""
    window = Window(2 * PANE_NS, PANE_NS)
    window.add(summary_of([9_000.0], stages={"queue": [8_000.0]}, ts_ns=0))
    window.add(summary_of([100.0, 120.0], ts_ns=PANE_NS))
    assert window.total().max_ms[0, 0] == 9_000.0
    assert "queue" in window.total().stages
    window.advance(2 * PANE_NS)
    assert window.total().max_ms[0, 0] == 120.0
    assert window.total().stages == ("total", "failed", "unattributed")


def test_removed_pane_can_be_added_anew(summary_of: Build) -> None:
    """A pane that turns out to hold something else is replaced, its neighbours untouched."""
    window = Window(4 * PANE_NS, PANE_NS)
    window.add(summary_of([100.0, 200.0, 300.0], ts_ns=[0, PANE_NS, PANE_NS]))
    window.remove(PANE_NS)
    window.add(summary_of([500.0], ts_ns=PANE_NS))
    total = window.total()
    assert total.requests.tolist() == [2]
    assert total.sum_ns[0, 0] == 600_000_000
    assert total.max_ms[0, 0] == 500.0


def test_longer_panes_hold_the_same_sums(summary_of: Build) -> None:
    """A window of minute panes over ten-second summaries counts the same requests."""
    rng = np.random.default_rng(5)
    totals, ts = rng.lognormal(5, 1, 500), rng.integers(0, 12 * PANE_NS, 500)
    summary = summary_of(totals, ts_ns=ts, cohorts=[COHORTS[k % 6] for k in range(500)])
    fine, coarse = Window(12 * PANE_NS, PANE_NS), Window(12 * PANE_NS, 6 * PANE_NS)
    fine.add(summary)
    coarse.add(summary)
    assert_same(coarse.total(), fine.total())
    assert coarse.cohorts().requests.sum() == 500


def test_departed_cohorts_give_up_their_memory(summary_of: Build) -> None:
    """A stream of ever new cohorts needs no more rows than one window of them."""
    window = Window(2 * PANE_NS, PANE_NS)
    for pane in range(50):
        window.advance(pane * PANE_NS)
        fresh = [(("route", f"r{pane}-{k}"),) for k in range(10)]
        window.add(summary_of([100.0 + pane] * 10, ts_ns=pane * PANE_NS, cohorts=fresh))
    totals = window.cohorts()
    assert len(totals.cohorts) == 20
    assert totals.requests.tolist() == [1] * 20
    assert {cohort[0][1].split("-")[0] for cohort in totals.cohorts} == {"r48", "r49"}
    assert len(window._cohorts._uses) <= 64


def test_repeated_deltas_of_a_pane_do_not_pile_up(summary_of: Build) -> None:
    """A thousand deltas of the same requests hold no more than a few of them would."""
    window = Window(PANE_NS, PANE_NS)
    delta = summary_of([100.0, 200.0, 400.0], stages={"queue": [1.0, 2.0, 4.0]})
    for _ in range(1_000):
        window.add(delta)
    part = window._service._running._sparse._parts[0]
    held = sum(len(chunk.key) for chunk in part.chunks)
    assert window.total().requests.tolist() == [3_000]
    assert held <= 2 * part.solid
    assert part.solid < 100


def test_thresholds_that_a_part_did_not_count_are_left_out(summary_of: Build) -> None:
    """Counts of a threshold add up over deltas and panes, and only where all have it."""
    window = Window(3 * PANE_NS, PANE_NS)
    window.add(summary_of([100.0, 350.0], thresholds_ms=[304.0, 103.0]))
    window.add(summary_of([100.0, 350.0, 200.0], thresholds_ms=[304.0, 103.0]))
    window.add(summary_of([350.0], thresholds_ms=[304.0, 103.0], ts_ns=PANE_NS))
    assert window.total().thresholds_ms == (103.0, 304.0)
    assert window.total().over.tolist() == [[4, 3]]
    window.add(summary_of([350.0], thresholds_ms=[103.0]))
    assert window.total().thresholds_ms == (103.0,)
    assert window.total().over.tolist() == [[5]]
    window.advance(3 * PANE_NS)
    assert window.total().thresholds_ms == (103.0, 304.0)
    assert window.total().over.tolist() == [[1, 1]]


@pytest.mark.parametrize(("length_ns", "pane_ns"), [(25, 10), (0, 10), (10, 0), (-10, 10)])
def test_window_wants_whole_panes(length_ns: int, pane_ns: int) -> None:
    """A length that is not a positive whole number of panes is refused."""
    with pytest.raises(ValueError, match="whole panes"):
        Window(length_ns, pane_ns)
