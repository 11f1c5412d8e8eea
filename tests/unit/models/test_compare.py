"""What changed between a baseline and now, and what cannot be said."""

from __future__ import annotations

import numpy as np
import pytest
from known_change import World, evidence
from requests_of import PANE_NS, columns_of, summary_of

from tailbudget.models.compare import compare
from tailbudget.models.evidence import Evidence, Gathering
from tailbudget.schemas.comparison import Change, Comparison


def plain(total_ms: np.ndarray) -> Evidence:
    """Return the evidence of successes of one cohort, one stage and one covariate."""
    gathering = Gathering("chat", pane_ns=PANE_NS, cold_windows=None)
    gathering.add(summary_of(columns_of(total_ms.tolist())))
    return gathering.evidence()


def row(found: Comparison, of: str, name: str, percentile: str) -> Change:
    (one,) = [
        row for row in found.changes if (row.of, row.name, row.percentile) == (of, name, percentile)
    ]
    return one


def test_where_nothing_changed_nothing_is_said_to() -> None:
    """Of 200 pairs of equal sides, one in twenty or fewer has any row that changed."""
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        sides = (plain(rng.lognormal(4, 0.7, 1_500)) for _ in range(2))
        found = compare(*sides)
        wrong += any(row.changed for row in found.changes)
        assert all(row.changed is not None for row in found.changes)
    assert wrong <= 19  # 10 and three deviations


def test_the_stage_and_the_cohort_that_changed_are_named() -> None:
    """A slower prefill is seen in the total and in its stage, not in the lookup."""
    found = compare(
        evidence(World(bulk=0.2), 6_000, 1), evidence(World(bulk=0.2, slow=1.5), 6_000, 2)
    )
    assert row(found, "total", "", "p50").changed
    assert row(found, "stage", "prefill", "p99").changed
    assert not row(found, "stage", "lookup", "p99").changed
    assert row(found, "cohort", "route=chat", "p99").changed
    change = row(found, "stage", "prefill", "p50")
    assert change.delta_ms is not None
    assert change.interval_ms is not None
    assert change.interval_ms[0] < change.delta_ms < change.interval_ms[1]
    assert change.interval_ms[0] > 0
    kinds = [change.of for change in found.changes]
    assert kinds == sorted(kinds, key=["total", "stage", "cohort"].index)


def test_a_small_side_says_nothing() -> None:
    """Of 500 requests there is a p95 and no p99; the verdict is about the p99."""
    rng = np.random.default_rng(0)
    found = compare(plain(rng.normal(100, 5, 500)), plain(rng.normal(300, 5, 5_000)))
    assert found.verdict == "insufficient"
    assert row(found, "total", "", "p95").changed is True
    p99 = row(found, "total", "", "p99")
    assert (p99.before_ms, p99.delta_ms, p99.p_value, p99.changed) == (None, None, None, None)
    assert p99.now_ms is not None
    assert (found.p99_change_ms, found.parts) == (None, ())
    assert "500" in found.note


def test_an_empty_side_says_nothing() -> None:
    """A baseline without requests compares with nothing, and breaks nothing."""
    nothing = Gathering("chat", pane_ns=PANE_NS, cold_windows=None).evidence()
    found = compare(nothing, plain(np.full(2_000, 100.0)))
    assert (found.before_n, found.now_n, found.verdict) == (0, 2_000, "insufficient")
    assert {row.changed for row in found.changes} == {None}


def test_a_p99_that_is_a_failure_has_no_milliseconds() -> None:
    """Where 5 % fail the p99 is a failure: changed, by failures, by no number of milliseconds."""
    found = compare(evidence(World(), 5_000, 1), evidence(World(failed=0.05), 5_000, 2))
    p99 = row(found, "total", "", "p99")
    assert p99.changed is True
    assert p99.before_ms is not None
    assert (p99.now_ms, p99.delta_ms, p99.interval_ms) == (None, None, None)
    assert (found.p99_change_ms, found.parts, found.verdict) == (None, (), "failures")
    back = compare(evidence(World(failed=0.05), 5_000, 2), evidence(World(), 5_000, 1))
    assert back.verdict == "improved"


def test_a_cohort_of_one_side_alone_has_no_change() -> None:
    """A route that the baseline has not is listed with its percentile and no judgement."""
    found = compare(evidence(World(), 6_000, 1), evidence(World(bulk=0.5), 6_000, 2))
    new = row(found, "cohort", "route=bulk", "p99")
    assert (new.before_ms, new.changed) == (None, None)
    assert new.now_ms is not None


def test_what_the_sketch_cannot_tell_apart_has_not_changed() -> None:
    """A difference of 0.2 % in 200,000 requests is significant, and below what a bucket shows."""
    rng = np.random.default_rng(2)
    base = rng.normal(100, 1, 200_000)
    found = compare(plain(base), plain(rng.normal(100.2, 1, 200_000)))
    p50 = row(found, "total", "", "p50")
    assert p50.p_value == pytest.approx(0, abs=1e-6)
    assert p50.changed is False
