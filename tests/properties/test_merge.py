"""Merging does not depend on how the records were split, nor on the order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.merge import merge
from tailbudget.models.select import collapse, encode_parts, split_panes
from tailbudget.schemas.wire import decode, encode

SEEDS = st.integers(0, 2**32)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 300), parts=st.integers(1, 6), weighted=st.booleans())
def test_any_split_of_the_records_gives_the_same_summary(
    trials: Any, seed: int, n: int, parts: int, *, weighted: bool
) -> None:
    """Batches of a split merge to the summary of one batch."""
    columns = trials.batch(seed, n, weighted=weighted)
    of = np.random.default_rng(seed + 1).integers(0, parts, n)
    split = [trials.rows(columns, np.flatnonzero(of == part)) for part in range(parts)]
    merged = merge([trials.summary(part) for part in split], keep=trials.keep)
    trials.same(merged, trials.summary(columns))


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, n=st.integers(2, 200))
def test_the_order_of_the_records_does_not_matter(trials: Any, seed: int, n: int) -> None:
    """Shuffled records have the same summary."""
    columns = trials.batch(seed, n)
    shuffled = trials.rows(columns, np.random.default_rng(seed).permutation(n))
    trials.same(trials.summary(shuffled), trials.summary(columns))


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, sizes=st.tuples(*[st.integers(0, 120)] * 3))
def test_merging_is_associative_and_commutative(
    trials: Any, seed: int, sizes: tuple[int, int, int]
) -> None:
    """(a + b) + c = a + (b + c) = c + b + a."""
    a, b, c = (trials.summary(trials.batch(seed + i, n)) for i, n in enumerate(sizes))
    left = merge([merge([a, b], keep=trials.keep), c], keep=trials.keep)
    right = merge([a, merge([b, c], keep=trials.keep)], keep=trials.keep)
    trials.same(left, right)
    trials.same(left, merge([c, b, a], keep=trials.keep))


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, n=st.integers(0, 200))
def test_merging_one_summary_returns_it(trials: Any, seed: int, n: int) -> None:
    """A merge of one part is that part to the last bit."""
    summary = trials.summary(trials.batch(seed, n))
    trials.same(merge([summary], keep=trials.keep), summary, exact=True)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 200))
def test_collapsing_is_merging_with_one_cohort(trials: Any, seed: int, n: int) -> None:
    """The summary of records whose cohort is () equals the collapsed one."""
    columns = trials.batch(seed, n)
    bare = trials.rows(columns, np.arange(n))
    bare.cohort[:] = columns.cohorts.index(())
    trials.same(collapse(trials.summary(columns), keep=trials.keep), trials.summary(bare))


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, n=st.integers(0, 200), share=st.floats(0.05, 1.0))
def test_parts_merge_back_to_the_whole(trials: Any, seed: int, n: int, share: float) -> None:
    """Cut by bytes or by pane, the parts lose nothing and repeat nothing."""
    whole = trials.summary(trials.batch(seed, n))
    limit = max(int(len(encode(whole)) * share), 1)
    encoded = encode_parts(whole, limit)
    parts = [decode(part) for part in encoded]
    sizes = zip(map(len, encoded), parts, strict=True)
    assert all(size <= limit or len(part.pane_ns) <= 1 for size, part in sizes)
    assert all(not part.ledger for part in parts[1:])
    trials.same(merge(parts, keep=trials.keep), whole, exact=True)
    panes = split_panes(whole)
    assert all(set(part.pane_ns.tolist()) <= {pane} for pane, part in panes.items())
    if panes:
        trials.same(merge(list(panes.values()), keep=trials.keep), whole, exact=True)
