"""Attempts of one operation become one request."""

from __future__ import annotations

import numpy as np
import pytest
from attempts import NAN, Try, columns_of_tries
from requests_of import SECOND_NS, T0_NS

from tailbudget.models.operations import Attempts, assemble, sequence
from tailbudget.schemas.records import Columns, Outcome

HOLD_NS = 120 * SECOND_NS
OK = Outcome.OK


def rows(tries: list[Try]) -> list[tuple[list[int], bool]]:
    return [(list(one.rows), one.complete) for one in sequence(columns_of_tries(tries), HOLD_NS)]


def stage(columns: Columns, name: str) -> list[float]:
    return [float(ms) for ms in columns.stage_ms[columns.stages.index(name)]]


def test_two_timeouts_and_a_success_are_one_request() -> None:
    """It lasts from the first start to the last end, ends as the last, and keeps its names."""
    tries = [
        Try(1, 1, 0, 60_000, model_ms=500, route="a"),
        Try(1, 2, 61, 60_000, route="b"),
        Try(1, 3, 123, 1_200, OK, model_ms=900, route="c"),
    ]
    one = assemble(columns_of_tries(tries), [Attempts([0, 1, 2], complete=True)])
    assert one.total_ms.tolist() == [124_200]
    assert one.outcome.tolist() == [OK]
    assert one.ts_ns.tolist() == [T0_NS]
    assert list(one.ids) == [tries[2].id]
    assert one.cohorts[one.cohort[0]] == (("route", "c"),)
    assert stage(one, "model") == [1_400]
    assert stage(one, "retry_wait") == [3_000]
    assert one.covariates == ("attempts", "tokens")
    assert one.covariate[:, 0].tolist() == [3, 30]
    assert (one.operation, one.attempt) == (None, None)


def test_a_single_attempt_stays_as_it_is() -> None:
    """Nothing is added to a request that was not retried, not even a stage of nothing."""
    columns = columns_of_tries([Try(1, 1, 0, 80, OK, model_ms=20)])
    one = assemble(columns, [Attempts([0], complete=True)])
    assert (one.stages, one.covariates) == (("model",), ("tokens",))
    assert one.total_ms.tolist() == [80]


def test_a_timeout_without_a_total_took_its_limit() -> None:
    """The last end is the last start and the limit; without either the request has no total."""
    tries = [Try(1, 1, 0, NAN, limit_ms=5_000), Try(1, 2, 6, NAN, limit_ms=5_000)]
    one = assemble(columns_of_tries(tries), [Attempts([0, 1], complete=False)])
    assert one.total_ms.tolist() == [11_000]
    assert stage(one, "retry_wait") == [1_000]
    unknown = assemble(
        columns_of_tries([Try(1, 1, 0, NAN), Try(1, 2, 6, NAN)]), [Attempts([0, 1], complete=False)]
    )
    assert np.isnan(unknown.total_ms).all()
    assert np.isnan(stage(unknown, "retry_wait")).all()


def test_attempts_that_overlap_leave_no_gap() -> None:
    """A hedge that starts before the first attempt has ended waits for nothing."""
    tries = [Try(1, 1, 0, 5_000), Try(1, 2, 2, 500, OK)]
    one = assemble(columns_of_tries(tries), [Attempts([0, 1], complete=True)])
    assert one.total_ms.tolist() == [2_500]
    assert stage(one, "retry_wait") == [0]


def test_the_number_orders_the_attempts_before_the_clock() -> None:
    """Clocks of several machines differ; a counter does not. Without numbers, time decides."""
    assert rows([Try(1, 2, 0, 100, OK), Try(1, 1, 1, 100)]) == [([1, 0], True)]
    assert rows([Try(1, 0, 5, 100, OK), Try(1, 0, 1, 100)]) == [([1, 0], True)]


def test_a_request_ends_with_the_first_final_attempt() -> None:
    """What comes after a success, or after its user has gone, is another request."""
    assert rows([Try(1, 1, 0, 100, OK), Try(1, 2, 1, 100, OK)]) == [([0], True), ([1], True)]
    gone = Try(1, 1, 0, 100, Outcome.CANCELLED)
    assert rows([gone, Try(1, 2, 1, 100)]) == [([0], True), ([1], False)]


def test_a_missing_attempt_keeps_the_rest_waiting() -> None:
    """A third attempt that ends well is not all while the second has not come."""
    assert rows([Try(1, 1, 0, 100), Try(1, 3, 2, 100, OK)]) == [([0, 1], False)]


@pytest.mark.parametrize(("gap_s", "requests"), [(120, 1), (121, 2)])
def test_what_starts_too_late_is_another_request(gap_s: float, requests: int) -> None:
    """The next attempt may start as late as the hold allows after the end of the last."""
    assert len(rows([Try(1, 1, 0, 1_000), Try(1, 2, 1 + gap_s, 100, OK)])) == requests


def test_the_wait_for_a_schedule_counts_once() -> None:
    """A total from the schedule begins before its start; later attempts add no second wait."""
    columns = columns_of_tries([Try(1, 1, 0, 1_300), Try(1, 2, 2, 2_800, OK)])
    waits = np.array([[300.0, 2_300.0]])  # both due at -0.3 s, took 1,000 and 500 ms
    logged = np.array([[1_000.0, 500.0]])
    scheduled = Columns(
        **{
            **{name: getattr(columns, name) for name in Columns.__slots__},
            "stages": ("logged", "model", "schedule_wait"),
            "stage_ms": np.concatenate([logged, columns.stage_ms, waits]),
        }
    )
    one = assemble(scheduled, [Attempts([0, 1], complete=True)])
    assert one.total_ms.tolist() == [2_800]
    assert stage(one, "schedule_wait") == [300]
    assert stage(one, "logged") == [2_500]
    assert stage(one, "retry_wait") == [1_000]
