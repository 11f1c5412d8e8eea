"""The split of an incident's p99 change, from ClickHouse to the words of a message."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from alerts import BURN, SECOND_NS, T0_NS, burn
from past import PastService
from requests_of import columns_of

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.records import Columns
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.messages.words import words
from tailbudget.streams.delivery.change_split import ChangeSplits, spans_of

N = 3_000
LENGTH_NS = 300 * SECOND_NS
OVER = burn(state="resolved", sequence=2, at_ns=T0_NS + LENGTH_NS, cleared_ns=T0_NS + LENGTH_NS)


def served(start_ns: int, *, slow: float = 1.0, bulk: float = 0.02, seed: int = 1) -> Columns:
    """Return five minutes of requests: those of the bulk route take five times as long."""
    rng = np.random.default_rng(seed)
    times = start_ns + np.sort(rng.integers(0, LENGTH_NS, N))
    is_bulk = rng.random(N) < bulk
    ms = np.where(is_bulk, 500.0, 100.0) * np.exp(0.05 * rng.standard_normal(N)) * slow
    ids = range(seed * N, (seed + 1) * N)
    made = columns_of(ms.tolist(), ids=ids, ts_ns=times.tolist())
    return replace(
        made,
        cohorts=((("route", "a"),), (("route", "bulk"),)),
        cohort=is_bulk.astype(np.int32),
        covariate=np.ones((1, N)),
    )


def told(store: ClickHouse, alert: Alert) -> Alert:
    """Return an alert as it is told."""
    return asyncio.run(ChangeSplits(Settings(), store)(alert))


@pytest.mark.parametrize(
    ("now", "made_by"),
    [
        ({"slow": 2.0}, "change_regression_ms"),
        ({"bulk": 0.0}, "change_workload_ms"),
    ],
)
def test_a_recovery_says_what_the_incident_was_made_of(
    clickhouse: ClickHouse, now: dict[str, float], made_by: str
) -> None:
    """Slower requests are a regression, other requests are the workload; the parts add up."""
    past = PastService(clickhouse, "chat")
    past.write(served(T0_NS - LENGTH_NS))
    past.write(served(T0_NS, seed=2, **now))
    found = told(clickhouse, OVER)
    parts = {
        name: getattr(found, name) or 0.0
        for name in ("change_failures_ms", "change_workload_ms", "change_regression_ms")
    }
    assert found.p99_change_ms is not None
    assert abs(found.p99_change_ms) > 200
    assert sum(parts.values()) == pytest.approx(found.p99_change_ms)
    assert max(parts, key=lambda name: abs(parts[name])) == made_by
    name = {"change_regression_ms": "regression", "change_workload_ms": "workload mix"}[made_by]
    said = next(line for line in words(found).tail if "against the time before" in line)
    assert said.partition(": ")[2].startswith(name)


def test_without_requests_nothing_is_added(clickhouse: ClickHouse) -> None:
    """A service without a past has no split, and its message comes all the same."""
    assert told(clickhouse, OVER).p99_change_ms is None


def test_what_has_only_begun_is_not_split() -> None:
    """Nor is a cohort's alert: the split is of all requests."""
    assert spans_of(replace(BURN, since_ns=BURN.at_ns)) is None
    assert spans_of(replace(BURN, cohort="route=a")) is None
    before, now = spans_of(BURN) or (None, None)
    assert before is not None
    assert now is not None
    assert (before.end_ns, now.end_ns) == (T0_NS, BURN.at_ns)
    assert now.end_ns - now.start_ns == before.end_ns - before.start_ns
