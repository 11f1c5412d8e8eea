"""Stages of requests: nested, repeated, parallel, in tasks and in threads."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tailbudget.streams.instrument import Collector, current_request, request, stage_timer


def of_one(collector: Collector) -> dict[str, Any]:
    (record,) = collector.records()
    return record


def stages_of(record: dict[str, Any]) -> set[str]:
    return {column for column in record if column.endswith("_ms")} - {"total_ms"}


def test_a_container_includes_what_is_nested() -> None:
    """The outer stage lasts at least as long as the inner one, and the request as the outer."""
    collector = Collector()
    with request(collector), stage_timer("answer"):
        time.sleep(0.002)
        with stage_timer("decode"):
            time.sleep(0.002)
    record = of_one(collector)
    assert 2 <= record["decode_ms"] <= record["answer_ms"] - 2
    assert record["answer_ms"] <= record["total_ms"]


def test_repetitions_add_up_and_recursion_counts_once() -> None:
    """Time between two spans of a stage is not the stage's; a stage within itself is one span."""
    collector = Collector()
    again = stage_timer("again")
    with request(collector):
        for _ in range(3):
            with again, again:
                time.sleep(0.002)
            time.sleep(0.005)
    record = of_one(collector)
    assert 6 <= record["again_ms"] <= record["total_ms"] - 15


def test_decorated_functions_keep_what_they_are() -> None:
    """Names, results, arguments and exceptions pass; the stage is there in both cases."""

    @stage_timer("lookup")
    def lookup(key: str, *, fails: bool = False) -> str:
        """Look."""
        if fails:
            raise KeyError(key)
        return key.upper()

    @stage_timer("fetch")
    async def fetch(key: str) -> str:
        await asyncio.sleep(0.002)
        return key.upper()

    collector = Collector()
    assert (lookup.__name__, lookup.__doc__) == ("lookup", "Look.")
    with request(collector):
        assert lookup("a") == "A"
        assert asyncio.run(fetch("b")) == "B"
    with pytest.raises(KeyError, match="c"), request(collector):
        lookup("c", fails=True)
    good, bad = collector.records()
    assert good["fetch_ms"] >= 2
    assert (good["status"], stages_of(good)) == ("ok", {"lookup_ms", "fetch_ms"})
    assert (bad["status"], stages_of(bad)) == ("error", {"lookup_ms"})


def test_generators_are_no_stages() -> None:
    """Decorating one would time nothing, so it is refused where it is written."""

    def tokens() -> Iterator[int]:
        yield 1

    async def later() -> AsyncIterator[int]:
        yield 1

    for function in (tokens, later):
        with pytest.raises(TypeError, match="generator: use `with stage_timer"):
            stage_timer("decode")(function)


def test_the_same_stage_in_parallel_counts_once() -> None:
    """Twenty fetches at once take about as long as one, and never longer than the request."""
    collector = Collector()

    @stage_timer("fetch")
    async def fetch() -> None:
        await asyncio.sleep(0.02)

    async def serve() -> None:
        with request(collector):
            await asyncio.gather(*(fetch() for _ in range(20)))

    asyncio.run(serve())
    record = of_one(collector)
    assert 20 <= record["fetch_ms"] <= record["total_ms"]


def test_different_stages_in_parallel_overlap() -> None:
    """Each has its own time, so that together they may exceed the total."""
    collector = Collector()

    async def stage(name: str) -> None:
        with stage_timer(name):
            await asyncio.sleep(0.05)

    async def serve() -> None:
        with request(collector):
            await asyncio.gather(stage("db"), stage("vectors"))

    asyncio.run(serve())
    record = of_one(collector)
    assert min(record["db_ms"], record["vectors_ms"]) >= 50
    assert max(record["db_ms"], record["vectors_ms"]) <= record["total_ms"]


def test_concurrent_requests_do_not_mix() -> None:
    """Requests that run in turns on one loop keep their own stages and columns."""
    collector = Collector()

    async def serve(number: int) -> None:
        with request(collector, request_id=f"r{number}"):
            for turn in range(3):
                with stage_timer(f"s{number}"):
                    await asyncio.sleep(0.0005 * ((number + turn) % 3))
                one = current_request()
                assert one is not None
                one.set(batch_size=number)

    async def all_at_once() -> None:
        await asyncio.gather(*(serve(number) for number in range(20)))

    asyncio.run(all_at_once())
    records = collector.records()
    assert sorted(record["request_id"] for record in records) == sorted(f"r{n}" for n in range(20))
    for record in records:
        number = int(record["request_id"][1:])
        assert (stages_of(record), record["batch_size"]) == ({f"s{number}_ms"}, number)


def test_threads_take_the_request_with_them() -> None:
    """`to_thread`, a copied context and an explicit stage count; a bare thread has no request."""
    collector = Collector()

    def work(name: str) -> None:
        with stage_timer(name):
            time.sleep(0.001)

    async def serve() -> None:
        with request(collector) as one:

            def explicit() -> None:
                with one.stage("explicit"):
                    time.sleep(0.001)

            context = contextvars.copy_context()
            await asyncio.to_thread(work, "to_thread")
            for target, arguments in (
                (context.run, (work, "copied")),
                (explicit, ()),
                (work, ("bare",)),
            ):
                thread = threading.Thread(target=target, args=arguments)
                thread.start()
                thread.join()

    asyncio.run(serve())
    assert stages_of(of_one(collector)) == {"to_thread_ms", "copied_ms", "explicit_ms"}


def test_a_stage_of_many_threads_counts_once() -> None:
    """Eight threads open and close one stage; its time is no longer than the request."""
    collector = Collector()

    def work(context: contextvars.Context) -> None:
        for _ in range(500):
            context.run(stage_once)

    def stage_once() -> None:
        with stage_timer("shared"):
            pass

    with request(collector), stage_timer("shared"):
        threads = [
            threading.Thread(target=work, args=(contextvars.copy_context(),)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.002)
    record = of_one(collector)
    assert 2 <= record["shared_ms"] <= record["total_ms"]


def test_outside_of_a_request_nothing_happens() -> None:
    """A stage without a request is no error."""
    with stage_timer("alone"):
        assert current_request() is None


def test_a_stage_that_outlives_the_request_ends_with_it() -> None:
    """What a task does after the request is in no record, and breaks nothing."""
    collector = Collector()

    async def straggler(started: asyncio.Event) -> None:
        with stage_timer("late"):
            started.set()
            await asyncio.sleep(0.01)
        with stage_timer("later"):
            pass
        one = current_request()
        assert one is not None
        one.set(batch_size=1)
        one.finish("error")

    async def serve() -> None:
        started = asyncio.Event()
        with request(collector):
            task = asyncio.create_task(straggler(started))
            await started.wait()
        await task

    asyncio.run(serve())
    record = of_one(collector)
    assert stages_of(record) == {"late_ms"}
    assert record["late_ms"] <= record["total_ms"]
    assert (record["status"], "batch_size" in record) == ("ok", False)
