"""Requests: their records, how they ended, and which of them are recorded."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import numpy as np
import pytest

from tailbudget.streams.instrument import (
    Collector,
    Finished,
    Sampling,
    current_request,
    request,
    stage_timer,
)
from tailbudget.streams.instrument.outcome import status_of
from tailbudget.streams.instrument.row import RESERVED_STAGES
from tailbudget.streams.instrument.spans import Spans
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder, fields


class HttpError(Exception):
    """As frameworks have them."""

    def __init__(self, status_code: int) -> None:
        super().__init__()
        self.status_code = status_code


class ReadTimeout(Exception):  # noqa: N818 - named as httpx's
    """As clients have them, derived from no common class."""


class Slower(ReadTimeout):
    """Derived from a timeout."""


ENDINGS = [
    (ValueError("x"), "error"),
    (TimeoutError(), "timeout"),
    (asyncio.TimeoutError(), "timeout"),  # noqa: UP041 - the old name
    (concurrent.futures.TimeoutError(), "timeout"),
    (ReadTimeout(), "timeout"),
    (Slower(), "timeout"),
    (asyncio.CancelledError(), "cancelled"),
    (concurrent.futures.CancelledError(), "cancelled"),
    (GeneratorExit(), "cancelled"),
    (HttpError(429), 429),
    (HttpError(504), 504),
    (HttpError(200), "error"),
    (ExceptionGroup("g", [TimeoutError(), Slower()]), "timeout"),
    (ExceptionGroup("g", [TimeoutError(), ValueError()]), "error"),
]


@pytest.mark.parametrize(("error", "status"), ENDINGS, ids=repr)
def test_the_status_tells_the_exception(error: BaseException, status: str | int) -> None:
    """The exception passes unchanged, and the record says what kind it was."""
    collector = Collector()
    with pytest.raises(type(error)) as raised, request(collector):
        raise error
    assert raised.value is error
    assert status_of(error) == status
    assert [record["status"] for record in collector.records()] == [status]


def test_a_real_timeout_and_a_real_cancellation() -> None:
    """Those of asyncio: a deadline inside of the request, and a task that is cancelled."""
    collector = Collector()

    async def serve(limit_s: float | None) -> None:
        with request(collector):
            async with asyncio.timeout(limit_s):
                await asyncio.sleep(30)

    async def both() -> None:
        with pytest.raises(TimeoutError):
            await serve(0.001)
        task = asyncio.create_task(serve(None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(both())
    assert [record["status"] for record in collector.records()] == ["timeout", "cancelled"]


def test_the_record_says_what_it_is_told() -> None:
    """Columns come from the call and from inside; the clock on the wall is read at the start."""
    collector = Collector(service="chat")
    before_ns = time.time_ns()
    due = datetime(2026, 3, 2, 10, tzinfo=UTC)
    with request(collector, request_id="a", route="search", scheduled_ts=due) as one:
        after_ns = time.time_ns()
        assert current_request() is one
        one.set(batch_size=3, region=None, prefill_ms=1.5)
        one.status = "rejected"
    (record,) = collector.records()
    assert before_ns <= record.pop("timestamp") <= after_ns
    assert record.pop("total_ms") > 0
    assert record == {
        "request_id": "a",
        "service": "chat",
        "status": "rejected",
        "route": "search",
        "scheduled_ts": "2026-03-02T10:00:00+00:00",
        "batch_size": 3,
        "prefill_ms": 1.5,
    }
    assert current_request() is None


def test_a_request_within_a_request_has_its_own_record() -> None:
    """Stages belong to the innermost request; the outer one goes on afterwards."""
    collector = Collector()
    with request(collector, request_id="outer"):
        with request(collector, request_id="inner"), stage_timer("a"):
            pass
        with stage_timer("b"):
            pass
    inner, outer = collector.records()
    assert ("a_ms" in inner, "b_ms" in inner) == (True, False)
    assert ("a_ms" in outer, "b_ms" in outer) == (False, True)


def test_the_halves_may_run_in_two_contexts() -> None:
    """Frameworks do so with generators that they run in threads; there is a record all the same."""
    collector = Collector()
    one = request(collector)
    contextvars.copy_context().run(one.__enter__)
    contextvars.copy_context().run(one.__exit__, None, None, None)
    assert len(collector.lines) == 1


def test_ids_are_unique_over_requests_and_forks() -> None:
    """A child that a server forks does not give the ids of its parent."""
    collector = Collector()
    for _ in range(100):
        with request(collector):
            pass
    ids = {record["request_id"] for record in collector.records()}
    assert len(ids) == 100
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, request(collector).request_id.encode())
        os._exit(0)
    os.waitpid(child, 0)
    given = os.read(reader, 100).decode()
    own = ids.pop()
    assert given.partition("-")[0] != own.partition("-")[0]


def test_real_decoder_accepts_every_record() -> None:
    """Whatever the request was like, the reader takes its record and finds no fault in it."""
    collector = Collector()
    rules = Rules(
        service="chat",
        default=ServiceRules(covariates=("batch_size", "tokens"), cohort_dims=("route", "region")),
    )

    def plain() -> None:
        with stage_timer("retrieve"), stage_timer("database"):
            time.sleep(0.0001)

    def fails() -> None:
        with stage_timer("retrieve"):
            raise TimeoutError

    def nothing() -> None:
        pass

    work: list[Callable[[], None]] = [plain, fails, nothing]
    started_ns = time.time_ns()
    for number in range(300):
        try:
            with request(collector, route=f"r{number % 3}", region="é\n\u2028", tokens=7) as one:
                one.set(batch_size=number, weight=1 + number % 2, timeout_ms=500, attempt=1)
                work[number % 3]()
        except TimeoutError:
            pass
    messages = [SourceMessage(b"\n".join(collector.lines), 0, time.time_ns())]
    decoded = decoder("native", rules).decode(messages)
    assert decoded.rejected == ()
    assert decoded.unknown == frozenset()
    counts: dict[str, int] = {}
    for (_, _, reason), count in decoded.ledger.items():
        counts[reason] = counts.get(reason, 0) + count
    assert counts == {"accepted": 300, "failed": 100}
    (columns,) = decoded.services
    assert columns.stages == ("database", "retrieve")
    assert columns.covariates == ("batch_size", "tokens")
    assert columns.weight is not None
    assert columns.weight.sum() == 450
    assert ((columns.ts_ns >= started_ns) & (columns.ts_ns <= time.time_ns())).all()
    totals = [record["total_ms"] for record in collector.records()]
    assert columns.total_ms.tolist() == totals


AWKWARD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"route": "\ud800", "region": "eu"}, {"region": "eu"}),
    ({"tokens": 2**70, "region": "eu"}, {"region": "eu"}),
    ({"region": HTTPStatus.OK}, {"region": 200}),
    ({"region": object}, {"region": "<class 'object'>"}),
    ({"total_ms": -1, "timestamp": 0, "status": "x", "region": "eu"}, {"region": "eu"}),
]


@pytest.mark.parametrize(("given", "kept"), AWKWARD)
def test_awkward_columns_cost_only_themselves(given: dict[str, Any], kept: dict[str, Any]) -> None:
    """What JSON cannot say, or what is ours to say, is left out; the record remains."""
    collector = Collector()
    with request(collector, **given):
        pass
    (record,) = collector.records()
    assert record.pop("request_id")
    assert record.pop("timestamp") > 0
    assert record.pop("total_ms") > 0
    assert record == {"status": "ok", **kept}


def test_reserved_stages_are_those_that_readers_do_not_take() -> None:
    """Each name that is left out would be no stage to the reader, and no name else is."""
    columns = {*fields.FIXED, "failed_ms", "unattributed_ms", "ttft_ms", "itl_ms", "tpot_ms"}
    taken = {column.removesuffix("_ms") for column in columns if column.endswith("_ms")}
    assert taken == RESERVED_STAGES
    collector = Collector()
    with request(collector), stage_timer("timeout"), stage_timer("total"):
        pass
    (record,) = collector.records()
    assert [column for column in record if column.endswith("_ms")] == ["total_ms"]


def finished(status: str | int, total_ms: float) -> Finished:
    clock = iter((0, round(total_ms * 1e6)))
    spans = Spans(lambda: next(clock))
    spans.freeze()
    return Finished("r", 1, status, {}, spans)


def test_sampling_keeps_failures_and_the_slow_and_is_unbiased() -> None:
    """Of the others about one in ten remains, and stands for ten."""
    draw = np.random.default_rng(7).random
    sampling = Sampling(one_in=10, always_from_ms=200, uniform=draw)
    assert sampling.weight(finished("timeout", 1)) == 1
    assert sampling.weight(finished(503, 1)) == 1
    assert sampling.weight(finished("ok", 200)) == 1
    weights = [sampling.weight(finished("ok", 199.9)) for _ in range(20_000)]
    assert set(weights) == {0, 10}
    # Five standard deviations of a sum of 20,000 draws with chance 0.1, each times 10.
    assert abs(sum(weights) - 20_000) < 5 * 10 * (20_000 * 0.09) ** 0.5
    assert Sampling().weight(finished("ok", 1)) == 1


def test_a_sample_of_a_sample_stands_for_both() -> None:
    """The weight that a request brings is multiplied."""
    collector = Collector()
    record = finished("ok", 1)._replace(columns={"weight": 3}, weight=10)
    collector.send(record)
    assert collector.records()[0]["weight"] == 30
