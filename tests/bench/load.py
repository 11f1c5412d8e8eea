"""The records that the benchmarks run on: simulated, seeded, on a Kafka topic or in a file.

A record is about 400 bytes: six latency columns (the total among them), four covariates and four
dimensions of 5 x 3 x 5 x 4 = 300 cohorts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tailbudget.streams import traffic
from tailbudget.streams.packing import PACK_BYTES, pack
from tailbudget.streams.scenario import Route, Scenario

ROUTES: Final = (
    Route("chat", 0.40, 350, 0.9, 24),
    Route("search", 0.25, 900, 0.6, 16, documents=6),
    Route("summarise", 0.15, 1800, 0.8, 32),
    Route("agent", 0.10, 1200, 1.0, 28, documents=4),
    Route("embed", 0.10, 500, 0.7, 1),
)
SERVICE: Final = Scenario(
    routes=ROUTES,
    variants=(("small", 0.5, 0.8), ("medium", 0.3, 1.0), ("large", 0.2, 1.3)),
    regions=(
        ("eu-west", 0.3, 4.0),
        ("us-east", 0.3, 6.0),
        ("us-west", 0.2, 7.0),
        ("ap-south", 0.1, 18.0),
        ("sa-east", 0.1, 20.0),
    ),
    tiers=(("free", 0.4), ("pro", 0.3), ("team", 0.2), ("enterprise", 0.1)),
)
_STEP_S: Final = 2.0
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """What is preloaded.

    Attributes:
        records: how many records there are.
        services: services that send them, in equal shares.
        rate: records per second of event time, over all services.
        start_ns: event time of the first.
    """

    records: int
    services: int = 1
    rate: float = 10_000.0
    start_ns: int = 0

    def scenarios(self) -> tuple[Scenario, ...]:
        """Return the simulated services."""
        names = [f"service-{n}" for n in range(self.services)]
        rate = self.rate / self.services
        return tuple(replace(SERVICE, service=s, rate=rate, seed=n) for n, s in enumerate(names))

    def batches(self) -> Iterator[tuple[list[bytes], int]]:
        """Yield (records, event time in ms of the first), in order of event time."""
        left, at_s = self.records, 0.0
        while left:
            made = [
                traffic.records(s, self.start_ns, at_s, at_s + _STEP_S) for s in self.scenarios()
            ]
            lines = [line for each in made for line in each]
            if len(made) > 1:  # by event time, as they would arrive
                order = np.argsort([_time(line) for line in lines], kind="stable")
                lines = [lines[i] for i in order.tolist()]
            yield lines[:left], int(self.start_ns / 1e6 + at_s * 1000)
            left -= len(lines[:left])
            at_s += _STEP_S


def load(records: int, *, services: int = 1, rate: float = 10_000.0) -> Load:
    """Return records whose event time ends about now."""
    start_s = time.time() - records / rate * 1.3 - 60
    return Load(records, services, rate, int(start_s) * 1_000_000_000)


def preload(load: Load, bootstrap: str, topic: str, *, partitions: int, packed: bool) -> int:
    """Write the records to a new topic, round robin; return the bytes of all records."""
    create(bootstrap, topic, partitions)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 500_000,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 2_000_000,
        }
    )
    size = turn = 0
    for lines, at_ms in load.batches():
        size += sum(map(len, lines))
        for value in _messages(lines, at_ms, packed=packed):
            producer.produce(topic, value, partition=turn % partitions, timestamp=at_ms)
            turn += 1
        producer.poll(0)
    if producer.flush(_PATIENCE_S):
        raise RuntimeError(f"the broker at {bootstrap} did not take all records")
    return size


def write(load: Load, path: Path) -> None:
    """Write the records to a file, a line each."""
    with path.open("wb") as file:
        for lines, _ in load.batches():
            file.write(b"\n".join(lines) + b"\n")


def create(bootstrap: str, topic: str, partitions: int) -> None:
    """Create a topic."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_PATIENCE_S)


def _messages(lines: list[bytes], at_ms: int, *, packed: bool) -> list[bytes]:
    if not packed:
        return lines
    return [p.value for p in pack(((line, at_ms) for line in lines), max_bytes=PACK_BYTES)]


def _time(line: bytes) -> bytes:
    at = line.index(b'"timestamp":"') + 13
    return line[at : at + 27]
