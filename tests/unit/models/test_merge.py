"""What merging refuses, and what becomes of names that only some parts have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tailbudget.models.merge import merge
from tailbudget.models.select import empty
from tailbudget.models.summarise import summarise
from tailbudget.schemas.records import Columns
from tailbudget.schemas.summary import Summary

NAN = float("nan")


def _summary(stage: str, covariate: str, thresholds_ms: tuple[float, ...] = (10.0,)) -> Summary:
    """Two successes of 5 and 20 ms, of which the stage took 2 ms each."""
    columns = Columns(
        service="chat",
        cohorts=((),),
        cohort=np.zeros(2, np.int32),
        id_hash=np.array([1, 2], np.uint64),
        ids=["a", "b"],
        ts_ns=np.zeros(2, np.int64),
        outcome=np.zeros(2, np.int8),
        total_ms=np.array([5.0, 20.0]),
        limit_ms=np.full(2, NAN),
        weight=None,
        stages=(stage,),
        stage_ms=np.full((1, 2), 2.0),
        covariates=(covariate,),
        covariate=np.array([[3.0, 4.0]]),
        offset=np.arange(2),
    )
    return summarise(columns, pane_ns=10**10, thresholds_ms=thresholds_ms)


def test_nothing_cannot_be_merged() -> None:
    """An empty merge has no service to speak of."""
    with pytest.raises(ValueError, match="nothing to merge"):
        merge([])


def test_services_do_not_mix() -> None:
    """Summaries of two services are refused, and both are named."""
    with pytest.raises(ValueError, match="several services: chat, search"):
        merge([empty("search"), empty("chat")])


def test_stages_and_covariates_are_the_union() -> None:
    """A stage that only one part has keeps its values, and is absent from the other's rows."""
    found = merge([_summary("queue", "tokens"), _summary("model", "batch_size")])
    assert found.stages == ("total", "failed", "unattributed", "model", "queue")
    assert found.covariates == ("batch_size", "tokens")
    assert found.n.tolist() == [[4, 0, 4, 2, 2]]
    assert found.sum_ns.tolist() == [[50_000_000, 0, 42_000_000, 4_000_000, 4_000_000]]
    assert found.min_ms[0].tolist() == [5.0, np.inf, 3.0, 2.0, 2.0]
    assert found.moments.n[0].tolist() == [[2, 0, 2, 2, 0], [2, 0, 2, 0, 2]]
    assert found.profile.covariate.sum(axis=0).tolist() == [7.0, 7.0]


def test_only_common_thresholds_are_kept() -> None:
    """A part that did not count above a threshold makes that count unknown."""
    found = merge([_summary("q", "t", (1.0, 10.0)), _summary("q", "t", (10.0, 30.0))])
    assert found.thresholds_ms == (10.0,)
    assert found.over.tolist() == [[2]]


def test_a_ledger_alone_does_not_cost_the_thresholds() -> None:
    """A part without requests merges its ledger and changes nothing else."""
    whole = _summary("q", "t")
    ledger = empty("chat", ledger={(0, "late"): 2, (0, "accepted"): 1})
    for parts in ([whole, ledger], [ledger, whole]):
        found = merge(parts)
        assert found.thresholds_ms == (10.0,)
        assert found.over.tolist() == [[1]]
        assert found.ledger == {(0, "late"): 2, (0, "accepted"): 3}
    assert merge([ledger, ledger]).ledger == {(0, "late"): 4, (0, "accepted"): 2}


def test_groups_are_aligned_by_pane_and_cohort() -> None:
    """The same group of two parts becomes one, others stay apart, in the binding order."""
    part = _summary("q", "t")
    later = replace(part, pane_ns=part.pane_ns + 10**10)
    named: Any = replace(part, cohorts=((("route", "a"),),))
    found = merge([later, named, part, part])
    assert found.pane_ns.tolist() == [0, 0, 10**10]
    assert found.cohorts == ((), (("route", "a"),), ())
    assert found.requests.tolist() == [4, 2, 2]


def test_a_repeated_id_is_sampled_once_by_its_slowest_record() -> None:
    """The sample knows one record a hash, whichever part it came in."""
    fast, slow = _summary("q", "t"), _summary("q", "t")
    slow.sample.values[:, 0] *= 10
    for parts in ([fast, slow], [slow, fast]):
        sample = merge(parts).sample
        assert sample.hash.tolist() == [1, 2]
        assert sample.values[:, 0].tolist() == [50.0, 200.0]
