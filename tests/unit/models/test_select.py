"""Taking summaries apart."""

from __future__ import annotations

import numpy as np
import pytest

from tailbudget.models.select import (
    collapse,
    empty,
    encode_parts,
    renamed,
    split_panes,
)
from tailbudget.models.summarise import summarise
from tailbudget.schemas.cohorts import OTHER
from tailbudget.schemas.records import Columns
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.wire import decode, encode

PANE_NS = 10**10
A, B, C = ((("route", name),) for name in "abc")


@pytest.fixture
def summary() -> Summary:
    """Requests of 1 to 12 ms, in turn of routes a, b, c, four to a pane."""
    n = 12
    columns = Columns(
        service="chat",
        cohorts=(A, B, C),
        cohort=np.arange(n, dtype=np.int32) % 3,
        id_hash=np.arange(n, dtype=np.uint64),
        ids=[f"r{i}" for i in range(n)],
        ts_ns=np.arange(n) // 4 * PANE_NS,
        outcome=np.zeros(n, np.int8),
        total_ms=np.arange(1.0, n + 1),
        limit_ms=np.full(n, np.nan),
        weight=None,
        stages=(),
        stage_ms=np.zeros((0, n)),
        covariates=(),
        covariate=np.zeros((0, n)),
        offset=np.arange(n),
    )
    return summarise(columns, pane_ns=PANE_NS, thresholds_ms=(6.0,))


def test_collapse_puts_all_cohorts_together(summary: Summary) -> None:
    """One group a pane, of the cohort ()."""
    found = collapse(summary)
    assert found.cohorts == ((), (), ())
    assert found.requests.tolist() == [4, 4, 4]
    assert found.over.tolist() == [[0], [2], [4]]
    assert found.max_ms[:, 0].tolist() == [4.0, 8.0, 12.0]


def test_cohorts_beyond_those_kept_become_other(summary: Summary) -> None:
    """The kept cohort stays, the rest adds up under its own name."""
    found = renamed(summary, [B if one == B else OTHER for one in summary.cohorts])
    assert found.cohorts == (OTHER, B) * 3
    assert found.requests.tolist() == [3, 1, 2, 2, 3, 1]


def test_panes_are_taken_apart_with_their_ledger(summary: Summary) -> None:
    """Other panes vanish from every field."""
    found = split_panes(summary)[PANE_NS]
    assert set(found.pane_ns.tolist()) == {PANE_NS}
    assert found.ledger == {(PANE_NS, "accepted"): 4}
    assert sorted(found.sample.ids) == ["r4", "r5", "r6", "r7"]
    assert found.profile.n.sum() == found.count.sum() // 2 == 4


def test_a_pane_may_be_a_ledger_alone() -> None:
    """Splitting keeps panes of which only the ledger speaks."""
    found = split_panes(empty("chat", ledger={(0, "late"): 1, (PANE_NS, "tombstone"): 2}))
    assert {pane: dict(part.ledger) for pane, part in found.items()} == {
        0: {(0, "late"): 1},
        PANE_NS: {(PANE_NS, "tombstone"): 2},
    }


def test_a_single_group_is_never_cut(summary: Summary) -> None:
    """However few bytes are allowed, each part has a group, in order."""
    parts = [decode(part) for part in encode_parts(summary, 1)]
    assert [part.requests.tolist() for part in parts] == [[n] for n in summary.requests.tolist()]
    assert [bool(part.ledger) for part in parts] == [True] + [False] * (len(parts) - 1)
    assert encode_parts(summary, 1 << 20) == [encode(summary)]
