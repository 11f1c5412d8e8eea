"""Sums that grow long are the same, however they come."""

from __future__ import annotations

import pytest
from requests_of import SECOND_NS, columns_of, summary_of

from tailbudget.models.evidence import Gathering
from tailbudget.models.merge import merge
from tailbudget.models.pile import Pile
from tailbudget.schemas.summary import Summary


def parts(count: int) -> list[Summary]:
    """Return summaries of one request each, in panes of their own."""
    return [
        summary_of(columns_of([float(i + 1)], ts_ns=[i * 10 * SECOND_NS])) for i in range(count)
    ]


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_a_pile_is_the_merge_of_its_parts(count: int) -> None:
    """Whatever was added up meanwhile, the sum has all, once."""
    pile = Pile()
    for part in parts(count):
        pile.add(part)
    whole, expected = pile.whole(), merge(parts(count))
    assert whole is not None
    assert whole.pane_ns.tolist() == expected.pane_ns.tolist()
    assert whole.sum_ns.tolist() == expected.sum_ns.tolist()
    assert whole.count.tolist() == expected.count.tolist()
    assert Pile().whole() is None


def test_a_timeline_of_many_panes_is_whole() -> None:
    """Slots lengthen as the span grows, and no request is lost or counted twice."""
    gathering = Gathering("svc", pane_ns=10 * SECOND_NS, cold_windows=None)
    for part in parts(800):
        gathering.add(part)
    evidence = gathering.evidence()
    assert evidence.slot_ns == 60 * SECOND_NS
    assert int(evidence.timeline.requests.sum()) == int(evidence.total.requests.sum()) == 800
    assert len(set(evidence.timeline.pane_ns.tolist())) == len(evidence.timeline.pane_ns)
