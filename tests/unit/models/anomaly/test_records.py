"""Sampled requests as the rows of a tick: fair, whole, and joined whatever they have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from requests_of import T0_NS, columns_of, summary_of

from tailbudget.models.anomaly.records import joined, records_of, rows_of, thinned
from tailbudget.schemas.anomalies import StageCohort
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.summary import Summary


def of_cohort(cohort: Cohort, stage: str = "model", n: int = 5) -> Summary:
    """Return a summary of a few requests of one cohort with one stage."""
    columns = columns_of([100.0 + i for i in range(n)], ts_ns=[T0_NS + i for i in range(n)])
    return summary_of(replace(columns, cohorts=(cohort,), stages=(stage,)))


def test_each_stage_of_a_request_is_a_row_with_its_shape() -> None:
    """Time, covariate and cohort are those of the request; the total is no stage."""
    rows = rows_of(records_of(of_cohort((("route", "a"),))))
    assert rows.keys == (StageCohort("model", "route=a"),)
    assert sorted(rows.ms.tolist()) == [50.0, 50.5, 51.0, 51.5, 52.0]
    assert rows.covariates == ("sequence_length",)
    assert np.allclose(rows.covariate[:, 0], rows.ms * 6)


def test_a_service_without_stages_is_judged_by_its_total() -> None:
    """There is nothing else to judge."""
    columns = replace(columns_of([100.0, 200.0]), stages=(), stage_ms=np.zeros((0, 2)))
    rows = rows_of(records_of(summary_of(columns)))
    assert rows.keys == (StageCohort("total", "route=a"),)
    assert sorted(rows.ms.tolist()) == [100.0, 200.0]


def test_what_is_kept_for_being_slow_is_left_out() -> None:
    """Of many requests the slowest would make every tick slower than usual."""
    total = np.concatenate([np.full(20_000, 100.0), [9_000.0, 8_000.0]])
    summary = summary_of(columns_of(total.tolist()))
    assert summary.sample.values[:, 0].max() == 9_000.0
    records = records_of(summary)
    assert 0 < len(records) < 300
    assert records.ms.max() == 50.0


def test_instances_are_taken_together() -> None:
    """Replicas do the same work; their cohorts are one key."""
    parts = [
        records_of(of_cohort((("route", "a"), ("instance", name)), n=n))
        for name, n in (("i-1", 3), ("i-2", 4))
    ]
    rows = rows_of(joined(parts))
    assert rows.keys == (StageCohort("model", "route=a"),)
    assert len(rows.ms) == 7


def test_parts_may_have_other_stages_and_cohorts() -> None:
    """A request has rows of its own stages only."""
    parts = [of_cohort((("route", "a"),)), of_cohort((("route", "b"),), stage="lookup", n=2)]
    rows = rows_of(joined([records_of(part) for part in parts]))
    counted = {rows.keys[k]: int((rows.key == k).sum()) for k in range(len(rows.keys))}
    assert counted == {StageCohort("model", "route=a"): 5, StageCohort("lookup", "route=b"): 2}


def test_thinning_is_by_hash_and_keeps_the_order() -> None:
    """The smallest hashes stay: which requests those are says nothing about their latency."""
    records = records_of(of_cohort((("route", "a"),), n=50))
    kept = thinned(records, 10)
    assert sorted(kept.hash.tolist()) == sorted(records.hash.tolist())[:10]
    places = [records.hash.tolist().index(one) for one in kept.hash.tolist()]
    assert places == sorted(places)
    assert thinned(records, 50) is records
