"""Batch work is refused with its signs; live services that have one of them are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from findings import findings
from gathered import T0_NS, gathered
from simulated import Service
from situations import nightly_batch

from tailbudget.models.causes import causes
from tailbudget.models.evidence import Evidence
from tailbudget.models.refusal import BATCH, may_recommend, refusal
from tailbudget.schemas.proposals import CauseName

NS = 1e9
DAY_S = 86_400.0


def log(at_s: np.ndarray, total_ms: np.ndarray, callers: Sequence[str] | None = None) -> Evidence:
    """Return the evidence of requests at given seconds."""
    columns = {
        "timestamp": (T0_NS + at_s * NS).astype(np.int64),
        "total_ms": total_ms,
        "forward_ms": total_ms * 0.9,
        "caller": callers or ["etl"] * len(at_s),
    }
    return gathered(columns, cohort_dims=("caller",))


def parallel_hourly(seed: int) -> Evidence:
    """Sixteen workers that score a table at the full hour, seconds an item."""
    rng = np.random.default_rng(seed)
    hours = np.repeat(np.arange(24) * 3600.0, 200)
    at_s = hours + rng.uniform(0, 90, len(hours))
    return log(np.sort(at_s), rng.lognormal(8, 0.3, len(hours)))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_nightly_batch_job_is_refused_with_its_figures(seed: int) -> None:
    """All signs are told, and what to use instead."""
    said = refusal(nightly_batch(seed), declared=None)
    assert said is not None
    assert said.reason == BATCH
    for text in ("5 runs begin", "same time of the day", "min or longer", "one after the other"):
        assert text in said.detail
    assert "one caller (caller=etl) for all 200 requests" in said.detail
    assert "throughput" in said.handoff


def test_an_hourly_job_of_many_workers_is_refused() -> None:
    """A schedule and one caller agree, though it has concurrency and takes seconds."""
    said = refusal(parallel_hourly(1), declared=None)
    assert said is not None
    assert "24 runs begin within" in said.detail
    assert "same time of the hour" in said.detail
    assert "one after the other" not in said.detail


def test_what_is_declared_goes_before_what_is_seen() -> None:
    """A declared batch is refused whatever it looks like; a declared live service never is."""
    live = Service(1).evidence()
    said = refusal(live, declared=" Batch ")
    assert said is not None
    assert said.detail == "The workload is declared to be batch"
    assert refusal(nightly_batch(1), declared="online") is None
    assert refusal(live, declared=None) is None
    assert refusal(live, declared="") is None


def office_hours(seed: int) -> Evidence:
    """A tool with one caller that people use in working hours."""
    rng = np.random.default_rng(seed)
    days = np.repeat(np.arange(5), 400)
    at_s = days * DAY_S + rng.uniform(0, 9 * 3600, len(days))
    return log(np.sort(at_s), rng.lognormal(5, 0.5, len(days)), ["web"] * len(days))


def quiet(seed: int) -> Evidence:
    """A service with a request a minute and one caller."""
    rng = np.random.default_rng(seed)
    at_s = np.cumsum(rng.exponential(60, 500))
    return log(at_s, rng.lognormal(6, 0.5, 500))


def minutes_for_many(seed: int) -> Evidence:
    """A video model: minutes a request, many callers and many at a time."""
    rng = np.random.default_rng(seed)
    at_s = np.cumsum(rng.exponential(5, 500))
    callers = [f"u{k}" for k in rng.integers(0, 50, 500)]
    return log(at_s, rng.lognormal(np.log(120_000), 0.2, 500), callers)


def one_at_a_time(seed: int) -> Evidence:
    """A load test with one caller that waits for each answer."""
    rng = np.random.default_rng(seed)
    total_ms = rng.lognormal(6, 0.3, 500)
    return log(np.cumsum(total_ms) / 1e3 - total_ms / 1e3, total_ms)


@pytest.mark.parametrize("live", [office_hours, quiet, minutes_for_many, one_at_a_time])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_sign_alone_is_no_batch(live: Callable[[int], Evidence], seed: int) -> None:
    """Live services that share signs with batch work are audited."""
    assert refusal(live(seed), declared=None) is None


def test_no_request_is_no_batch() -> None:
    """An empty evidence says nothing."""
    assert refusal(log(np.zeros(0), np.zeros(0)), declared=None) is None


def test_no_fix_without_stages() -> None:
    """A log of totals alone gets no cause and no fix."""
    service = Service(1)
    evidence = gathered({"total_ms": service.total()})
    found = findings(evidence)
    said = causes(evidence, found)
    assert [one.cause for one in said] == [CauseName.UNKNOWN]
    assert "time the parts of a request" in said[0].missing[0]
    assert "no stage is timed" in may_recommend(found, said)


def test_no_fix_without_a_cause_and_one_with() -> None:
    """The reason names what to measure next; with a cause there is no reason."""
    evidence = Service(1).evidence()
    found = findings(evidence)
    said = causes(evidence, found)
    assert may_recommend(found, said).startswith("no fix without a named cause: ")
    named = [replace(said[0], cause=CauseName.CONTENTION, score=0.8)]
    assert may_recommend(found, named) == ""
    weak = [replace(named[0], score=0.1)]
    assert may_recommend(found, weak).startswith("no fix without a named cause")
    assert may_recommend(replace(found, tail_driver=None), named).startswith(
        "slow requests take no longer"
    )
