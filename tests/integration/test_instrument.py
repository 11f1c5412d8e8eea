"""A service with the middleware, through a real broker to the reader's decoder."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from new_topics import create_topics

from tailbudget.streams.instrument import (
    RecordMiddleware,
    RecordProducer,
    current_request,
    request,
    stage_timer,
)
from tailbudget.streams.kafka import client_config
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder

REQUESTS = 400


@stage_timer("retrieve")
async def retrieve(documents: int) -> int:
    """Look for documents, some of them at once."""
    await asyncio.gather(*(lookup() for _ in range(documents)))
    return documents


@stage_timer("lookup")
async def lookup() -> None:
    """Look for one document."""
    await asyncio.sleep(0.001)


async def service(scope: Any, _receive: Any, send: Any) -> None:
    """Route, retrieve, and stream an answer; some requests fail in a way of their own."""
    number = int(scope["path"].rpartition("/")[2])
    scope["path_template"] = "/answers/{number}"
    one = current_request()
    assert one is not None
    one.set(candidates=await retrieve(number % 4), region="eu" if number % 2 else "us")
    if number % 10 == 7:
        raise TimeoutError(number)
    await send({"type": "http.response.start", "status": 503 if number % 10 == 8 else 200})
    for _ in range(3):
        with stage_timer("decode"):
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"token", "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def answer_all(app: Any) -> None:
    """Serve all requests, forty at a time."""
    limit = asyncio.Semaphore(40)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(_message: Any) -> None:
        await asyncio.sleep(0)

    async def answer(number: int) -> None:
        async with limit:
            with suppress(TimeoutError):
                await app({"type": "http", "path": f"/answers/{number}"}, receive, send)

    await asyncio.gather(*(answer(number) for number in range(REQUESTS)))


def messages_of(bootstrap: str, topic: str, partitions: int, count: int) -> list[SourceMessage]:
    """Return the messages of a topic."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"test-{uuid4().hex[:8]}"})
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    found: list[SourceMessage] = []
    deadline = time.monotonic() + 60
    try:
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(count, timeout=0.5):
                arrival_ns = message.timestamp()[1] * 1_000_000
                found.append(SourceMessage(message.value(), message.offset(), arrival_ns))
    finally:
        consumer.close()
    return found


def test_the_reader_gets_exactly_the_records_of_the_service(bootstrap: str) -> None:
    """Every request is one accepted record, with its stages, cohort, shape and outcome."""
    topic = f"instrument-{uuid4().hex[:8]}"
    create_topics(client_config(bootstrap), {topic: 2})
    producer = RecordProducer(client_config(bootstrap), topic=topic, service="answers")
    app = RecordMiddleware(
        service, producer, columns=lambda scope: {"request_id": scope["path"], "timeout_ms": 5000}
    )
    started_ns = time.time_ns()
    asyncio.run(answer_all(app))
    with request(producer, request_id="last"):
        pass
    producer.close()
    stats = producer.stats()
    assert (stats.offered, stats.delivered, stats.dropped) == (REQUESTS + 1, REQUESTS + 1, {})

    rules = ServiceRules(covariates=("candidates",), cohort_dims=("route", "region"))
    messages = messages_of(bootstrap, topic, 2, stats.messages)
    assert len(messages) == stats.messages < REQUESTS / 4
    decoded = decoder("native", Rules(default=rules)).decode(messages)
    reasons: dict[str, int] = {}
    for (service_name, _, reason), count in decoded.ledger.items():
        assert service_name == "answers"
        reasons[reason] = reasons.get(reason, 0) + count
    assert reasons == {"accepted": REQUESTS + 1, "failed": REQUESTS // 5}
    assert (decoded.rejected, decoded.unknown) == ((), frozenset())

    (columns,) = decoded.services
    rows = {name: row for row, name in enumerate(columns.ids)}
    assert set(rows) == {"last", *(f"/answers/{number}" for number in range(REQUESTS))}
    assert columns.stages == ("decode", "lookup", "retrieve")
    decode, looked, retrieved = columns.stage_ms
    assert ((columns.ts_ns >= started_ns) & (columns.ts_ns <= time.time_ns())).all()
    for number in range(REQUESTS):
        row = rows[f"/answers/{number}"]
        region = "eu" if number % 2 else "us"
        cohort = (("route", "/answers/{number}"), ("region", region))
        assert columns.cohorts[columns.cohort[row]] == cohort
        assert columns.covariate[0, row] == number % 4
        assert columns.outcome[row] == {7: 2, 8: 4}.get(number % 10, 0)
        assert retrieved[row] <= columns.total_ms[row]
        assert looked[row] <= retrieved[row] if number % 4 else looked[row] != looked[row]
        assert (decode[row] >= 0) == (number % 10 != 7)
        assert columns.limit_ms[row] == pytest.approx(5000)
