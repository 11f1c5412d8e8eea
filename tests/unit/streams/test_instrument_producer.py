"""The producer: what it drops, that it counts all of it, and that it disturbs nobody."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from new_topics import create_topics
from pages import DOCS, blocks

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.embedded import EmbeddedBroker, free_port
from tailbudget.streams.instrument import (
    DROPS,
    Limits,
    ProducerStats,
    RecordProducer,
    Sampling,
    request,
    stage_timer,
)
from tailbudget.streams.instrument import producer as producer_module
from tailbudget.streams.instrument.shipper import MAX_RECORD_BYTES
from tailbudget.streams.kafka import client_config


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker of this module's own, for it is left alone with what it has."""
    with EmbeddedBroker(log_path=tmp_path_factory.mktemp("broker") / "broker.log") as broker:
        yield broker.bootstrap


def consume(bootstrap: str, topic: str, records: int) -> list[dict[str, object]]:
    """Return the records of a topic of one partition, at least so many if they come."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    rows: list[dict[str, object]] = []
    try:
        for _ in range(30):
            for message in consumer.consume(1000, timeout=0.5):
                rows += map(orjson.loads, (message.value() or b"").split(b"\n"))
            if len(rows) >= records:
                break
    finally:
        consumer.close()
    return rows


def make(producer: RecordProducer, count: int, **columns: str) -> None:
    """Make so many records."""
    for number in range(count):
        with request(producer, request_id=f"r{number}", **columns), stage_timer("a"):
            pass


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something that happens in another thread."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def assert_adds_up(stats: ProducerStats) -> None:
    """Fail unless each record that was offered is in one of the counts."""
    known = stats.sampled_out + stats.delivered + stats.pending + sum(stats.dropped.values())
    assert stats.offered == known
    assert set(stats.dropped) <= set(DROPS)


def test_all_records_arrive_packed(bootstrap: str) -> None:
    """Three thousand records travel in few messages, each once, with the producer's service."""
    create_topics(client_config(bootstrap), {"packed": 1})
    producer = RecordProducer({"bootstrap.servers": bootstrap}, topic="packed", service="chat")
    make(producer, 3000)
    producer.close()
    stats = producer.stats()
    assert (stats.offered, stats.delivered, stats.pending, stats.dropped) == (3000, 3000, 0, {})
    assert 1 < stats.messages < 300
    rows = consume(bootstrap, "packed", 3000)
    assert sorted(str(row["request_id"]) for row in rows) == sorted(f"r{n}" for n in range(3000))
    assert {row["service"] for row in rows} == {"chat"}
    assert all(0 <= row["a_ms"] <= row["total_ms"] for row in rows)  # type: ignore[operator]


def test_it_delivers_without_being_closed(bootstrap: str) -> None:
    """Records go out while the service runs, over one connection."""
    create_topics(client_config(bootstrap), {"running": 1})
    producer = RecordProducer({"bootstrap.servers": bootstrap}, topic="running")
    make(producer, 5)
    wait_until(lambda: producer.stats().delivered == 5, "the records are not delivered")
    assert producer._shipper is not None
    client = producer._shipper.client
    make(producer, 5)
    wait_until(lambda: producer.stats().delivered == 10, "later records are not delivered")
    assert client is not None
    assert producer._shipper.client is client
    producer.close()


def test_without_a_broker_records_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing raises or waits, the bound holds, and each reason is logged once."""
    producer = RecordProducer(
        {"bootstrap.servers": f"127.0.0.1:{free_port()}", "message.timeout.ms": 300},
        topic="away",
        limits=Limits(queue=50, flush_s=0.2),
    )
    with caplog.at_level(logging.WARNING, "tailbudget.instrument"):
        make(producer, 200)
        assert producer.stats().dropped.get("full", 0) > 0
        wait_until(lambda: "undelivered" in producer.stats().dropped, "no message has expired")
        make(producer, 200)
        producer.close()
        stats = producer.stats()
        make(producer, 3)
    assert_adds_up(stats)
    assert (stats.offered, stats.delivered, stats.pending) == (400, 0, 0)
    assert stats.last_error
    logged = [r.message for r in caplog.records if r.name == "tailbudget.instrument"]
    for reason in ("full", "undelivered", "closed"):
        assert sum(DROPS[reason] in text for text in logged) == 1, logged
    assert len(logged) == 3
    assert producer.stats().dropped["closed"] == 3
    assert_adds_up(producer.stats())


def test_a_full_buffer_of_the_client_drops_too() -> None:
    """Where the broker is away for long, memory stays bounded by the client's own buffer."""
    producer = RecordProducer(
        {"bootstrap.servers": f"127.0.0.1:{free_port()}", "queue.buffering.max.messages": 1},
        topic="away",
        limits=Limits(flush_s=0.1),
    )
    make(producer, 1)
    wait_until(lambda: not producer._queue, "the queue is not taken")
    make(producer, 2000)
    wait_until(lambda: producer.stats().dropped.get("buffer", 0) == 2000, "the buffer never fills")
    producer.close()
    stats = producer.stats()
    assert_adds_up(stats)
    assert stats.dropped == {"buffer": 2000, "undelivered": 1}


def test_unusable_records_cost_only_themselves(bootstrap: str) -> None:
    """One that readers would refuse for its size, or has no id in JSON, leaves the others be."""
    create_topics(client_config(bootstrap), {"mixed": 1})
    producer = RecordProducer({"bootstrap.servers": bootstrap}, topic="mixed")
    for request_id, route in (("a", "x"), ("b", "x" * MAX_RECORD_BYTES), ("\ud800", "x")):
        with request(producer, request_id=request_id, route=route):
            pass
    with request(producer, request_id="c", route="\ud800"):
        pass
    producer.close()
    stats = producer.stats()
    assert_adds_up(stats)
    assert stats.dropped == {"oversize": 1, "no_json": 1}
    assert stats.lost_columns == 2
    assert [row["request_id"] for row in consume(bootstrap, "mixed", 2)] == ["a", "c"]


def test_sampled_records_carry_their_weight(bootstrap: str) -> None:
    """With every fourth draw below the limit a quarter remains; failures all do."""
    create_topics(client_config(bootstrap), {"sampled": 1})
    draws = iter([0.0, 0.25, 0.5, 0.75] * 100)
    producer = RecordProducer(
        {"bootstrap.servers": bootstrap},
        topic="sampled",
        sampling=Sampling(one_in=4, uniform=lambda: next(draws)),
    )
    make(producer, 40)
    for _ in range(5):
        with pytest.raises(ValueError, match="x"), request(producer):
            raise ValueError("x")
    producer.close()
    stats = producer.stats()
    assert_adds_up(stats)
    assert (stats.offered, stats.sampled_out, stats.delivered) == (45, 30, 15)
    rows = consume(bootstrap, "sampled", 15)
    weights = {status: [r.get("weight", 1) for r in rows if r["status"] == status] for status in
               ("ok", "error")}  # fmt: skip
    assert weights == {"ok": [4] * 10, "error": [1] * 5}


def test_wrong_properties_are_refused_at_once() -> None:
    """A misspelt property is told when the service starts, not when records get lost."""
    with pytest.raises(ConfigError, match="No such configuration property") as raised:
        RecordProducer({"bootstrap.server": "x"})
    assert raised.value.remedy


SERVICE = """
import sys
from tailbudget.streams.instrument import Limits, RecordProducer, request
producer = RecordProducer({{"bootstrap.servers": {bootstrap!r}}}, topic={topic!r},
                          limits=Limits(flush_s={flush_s}))
for number in range(20):
    with request(producer, request_id=f"r{{number}}"):
        pass
{rest}
"""

FORK = """
import os
while producer.stats().delivered < 20:
    pass
child = os.fork()
if not child:
    for number in range(20, 25):
        with request(producer, request_id=f"r{number}"):
            pass
    sys.exit(0)
_, status = os.waitpid(child, 0)
sys.exit(status)
"""


def run_service(bootstrap: str, topic: str, rest: str = "", flush_s: float = 10.0) -> float:
    """Run a service of 20 requests to its end; return the seconds that it took."""
    code = SERVICE.format(bootstrap=bootstrap, topic=topic, rest=rest, flush_s=flush_s)
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
    return time.monotonic() - begin


def test_the_end_of_the_process_sends_what_is_left(bootstrap: str) -> None:
    """A script that ends at once, without closing, loses nothing."""
    create_topics(client_config(bootstrap), {"ended": 1})
    run_service(bootstrap, "ended")
    assert len(consume(bootstrap, "ended", 20)) == 20


def test_the_end_of_the_process_does_not_wait_for_ever() -> None:
    """Without a broker the process ends by itself, long before messages expire (30 s)."""
    assert run_service(f"127.0.0.1:{free_port()}", "away", flush_s=0.2) < 25


def test_a_forked_child_has_a_producer_of_its_own(bootstrap: str) -> None:
    """A server may fork after it has sent records: both processes send on, and both end."""
    create_topics(client_config(bootstrap), {"forked": 1})
    run_service(bootstrap, "forked", FORK)
    ids = [row["request_id"] for row in consume(bootstrap, "forked", 25)]
    assert sorted(map(str, ids)) == sorted(f"r{number}" for number in range(25))


def test_the_examples_of_the_page_make_the_records_that_it_shows(bootstrap: str) -> None:
    """Each program of docs/instrument.md runs as it stands, but for the broker's address."""
    create_topics(client_config(bootstrap), {producer_module.TOPIC: 1})
    page = DOCS / "instrument.md"
    chat, score, sampled = (
        block.replace("127.0.0.1:9092", bootstrap) for block in blocks(page, "python")
    )
    spaces: list[dict[str, Any]] = [{}, {}, {}]
    for program, space in zip((chat, score, sampled), spaces, strict=True):
        exec(compile(program, str(page), "exec"), space)  # noqa: S102 - our own page
    service, _, sampling = spaces

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        assert message["type"].startswith("http.response.")

    asyncio.run(service["app"]({"type": "http", "path": "/chats/7"}, receive, send))
    service["producer"].close()
    sampling["producer"].close()
    (shown,) = (json.loads(block) for block in blocks(page, "json"))
    rows = {row["service"]: row for row in consume(bootstrap, producer_module.TOPIC, 2)}
    assert set(rows["chat"]) == set(shown)
    for column in ("service", "status", "route", "candidates", "customer_tier"):
        assert rows["chat"][column] == shown[column]
    assert rows["scorer"]["request_id"] == "job-1"
    assert {"features_ms", "forward_ms", "batch_size", "timeout_ms"} <= set(rows["scorer"])


def test_the_producer_has_no_thread_before_its_first_record() -> None:
    """Servers fork workers after they have loaded the application."""
    producer = RecordProducer({"bootstrap.servers": f"127.0.0.1:{free_port()}"})
    tasks = Path(f"/proc/{os.getpid()}/task")
    names = []
    for task in tasks.iterdir() if tasks.exists() else ():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread of an earlier test ends
            names.append((task / "comm").read_text())
    assert producer._shipper is None
    assert not [name for name in names if name.startswith("tailbudget-instr")]
    producer.close()
    assert producer.stats().offered == 0
