"""Evidence does not depend on how panes were grouped, cut or ordered on the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_records import PANE_NS, SECOND_NS, T0_NS, random_columns
from same_evidence import assert_same_evidence
from same_values import assert_same

from tailbudget.models.columns import take
from tailbudget.models.evidence import Evidence, Gathering
from tailbudget.models.evidence_wire import dump, load
from tailbudget.models.select import empty, split_panes
from tailbudget.models.summarise import summarise
from tailbudget.schemas.errors import ReleaseError, WireError
from tailbudget.schemas.records import Columns
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.summary import Summary

SEEDS = st.integers(0, 2**32)
SPANS_S = st.sampled_from([30, 300, 3_000, 30_000, 300_000])
WINDOWS = st.lists(st.tuples(st.floats(-0.5, 1.2), st.floats(0.001, 0.6)), max_size=3)


def requests(seed: int, n: int, span_s: int) -> Columns:
    """Return requests of a few replicas, so that there are instances."""
    columns = random_columns(seed, n, span_s=span_s, routes=("chat", "a,b=c\\"))
    cohorts = tuple(
        (*cohort, ("replica", f"r{place % 3}")) for place, cohort in enumerate(columns.cohorts)
    )
    return replace(columns, cohorts=cohorts)


def windows(parts: Sequence[tuple[float, float]], span_s: int) -> list[ColdWindow]:
    """Return cold windows by their start and length in shares of the span."""
    return [
        ColdWindow(
            start_ns=T0_NS + int(start * span_s * SECOND_NS),
            end_ns=T0_NS + int((start + length) * span_s * SECOND_NS),
            version="v2",
            kind="deploy",
        )
        for start, length in parts
    ]


def summary_of(columns: Columns) -> Summary:
    """Return the summary of requests."""
    return summarise(columns, pane_ns=PANE_NS, thresholds_ms=(100.0, 250.5))


def evidence_of(parts: Sequence[Summary | Evidence], cold: list[ColdWindow] | None) -> Evidence:
    """Return the evidence of summaries and evidences, added in order."""
    gathering = Gathering("chat", pane_ns=PANE_NS, cold_windows=cold)
    for part in parts:
        if isinstance(part, Evidence):
            gathering.add_evidence(part)
        else:
            gathering.add(part)
    return gathering.evidence()


def touching(cold: list[ColdWindow] | None, parts: Sequence[Summary]) -> list[ColdWindow] | None:
    """Return the windows that touch any pane of the parts."""
    panes = [int(at) for part in parts for at in part.pane_ns.tolist()]
    if cold is None or not panes:
        return cold
    low, high = min(panes), max(panes) + PANE_NS
    return [window for window in cold if window.start_ns < high and window.end_ns > low]


@settings(max_examples=80, deadline=None)
@given(
    seed=SEEDS,
    n=st.integers(1, 600),
    span_s=SPANS_S,
    cold=st.none() | WINDOWS,
    groups=st.integers(1, 6),
    cut=st.booleans(),
)
def test_any_grouping_gives_the_same_evidence(
    seed: int, n: int, span_s: int, cold: Any, groups: int, *, cut: bool
) -> None:
    """Whole panes or parts of panes, one by one or gathered before, in any order."""
    rng = np.random.default_rng(seed)
    columns = requests(seed, n, span_s)
    events = None if cold is None else windows(cold, span_s)
    if cut:
        of = rng.integers(0, groups * 2, n)
        pieces = [summary_of(take(columns, of == part)) for part in range(groups * 2)]
    else:
        pieces = list(split_panes(summary_of(columns)).values())
    pieces.append(empty("chat", thresholds_ms=(100.0, 250.5), ledger={(T0_NS, "late"): 3}))
    shuffled = [pieces[at] for at in rng.permutation(len(pieces))]
    mixed: list[Summary | Evidence] = []
    for group in range(groups):
        mine = shuffled[group::groups]
        if rng.random() < 0.5:
            mixed += mine
        elif rng.random() < 0.5:
            mixed.append(evidence_of(mine, touching(events, mine)))
        else:
            mixed.append(evidence_of([evidence_of(mine[::2], events), *mine[1::2]], events))
    whole = [summary_of(columns), pieces[-1]]
    assert_same_evidence(evidence_of(mixed, events), evidence_of(whole, events))


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, n=st.integers(600, 2_500))
def test_a_crowded_pane_is_sampled_alike_however_it_was_cut(seed: int, n: int) -> None:
    """Many more requests of a cohort and pane than are sampled of them."""
    columns = requests(seed, n, 15)
    of = np.random.default_rng(seed).integers(0, 5, n)
    parts = [evidence_of([summary_of(take(columns, of == part))], None) for part in range(5)]
    whole = evidence_of([summary_of(columns)], None)
    assert_same_evidence(evidence_of(parts, None), whole)
    assert len(whole.total.sample.ids) < n


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, n=st.integers(0, 300), span_s=SPANS_S, cold=st.none() | WINDOWS)
def test_the_bytes_of_an_evidence_are_the_evidence(
    seed: int, n: int, span_s: int, cold: Any
) -> None:
    """What is dumped is loaded to the last bit."""
    events = None if cold is None else windows(cold, span_s)
    evidence = evidence_of([summary_of(requests(seed, n, span_s))] if n else [], events)
    assert_same(load(dump(evidence)), evidence)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_an_error_that_has_a_name(data: st.DataObject) -> None:
    """Whatever was cut off or changed is noticed."""
    stored = dump(evidence_of([summary_of(requests(7, 50, 60))], None))
    at = data.draw(st.integers(0, len(stored) - 1))
    changed = bytearray(stored)
    changed[at] ^= data.draw(st.integers(1, 255))
    for damaged in (stored[:at], bytes(changed)):
        with pytest.raises(WireError):
            load(damaged)


def test_another_version_is_named() -> None:
    """Bytes of another release are no damage."""
    stored = bytearray(dump(evidence_of([], None)))
    stored[2] += 1
    with pytest.raises(ReleaseError, match="version 2"):
        load(bytes(stored))
