"""Publishing simulated traffic live."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from new_topics import create_topics

from tailbudget.streams.embedded import EmbeddedBroker
from tailbudget.streams.kafka import client_config
from tailbudget.streams.scenario import Deploy, Fault, Scenario
from tailbudget.streams.simulate import (
    Pace,
    Progress,
    Simulation,
    Topics,
    run,
    run_live,
)
from tailbudget.streams.traffic import ScenarioTraffic, deploys, records

START_NS = 1_772_445_600_000_000_000
SCENARIO = Scenario(
    rate=50,
    deploys=(Deploy("v2", after_s=2),),
    faults=(Fault("decode", 3, after_s=4, for_s=3),),
)


class Clock:
    """A clock that only moves when somebody waits, by what they wait."""

    def __init__(self, stop_after_s: float = 1e9, stall_s: float = 0.0) -> None:
        self.ns = START_NS
        self.stop_ns = START_NS + round(stop_after_s * 1e9)
        self.stall_ns = round(stall_s * 1e9)

    def now_ns(self) -> int:
        return self.ns

    def wait(self, seconds: float) -> bool:
        self.ns += round(seconds * 1e9) + self.stall_ns
        self.stall_ns = 0
        return self.ns >= self.stop_ns


class Memory:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, int]] = []
        self.events: list[tuple[str, bytes, bytes]] = []
        self.sizes: list[int] = []

    def publish(self, topic: str, records: Iterable[tuple[bytes, int]], /) -> int:
        assert topic == "requests"
        got = list(records)
        self.records += got
        self.sizes.append(len(got))
        return len(got)

    def send(self, topic: str, value: bytes, /, *, timestamp_ms: int, key: bytes) -> None:
        assert timestamp_ms >= START_NS // 1_000_000
        self.events.append((topic, key, value))


def play(clock: Clock, duration_s: float | None) -> tuple[Memory, Progress, list[Progress]]:
    memory = Memory()
    reports: list[Progress] = []
    simulation = Simulation(
        memory, ScenarioTraffic(SCENARIO), Topics("requests", "deploys"), START_NS
    )
    pace = Pace(now_ns=clock.now_ns, wait=clock.wait)
    return memory, run_live(simulation, pace, duration_s, reports.append), reports


def test_publishes_each_record_once_its_time_has_come() -> None:
    """All records of the duration are published in order, stamped at most a tick after them."""
    memory, last, _ = play(Clock(), 9.95)
    expected = records(SCENARIO, START_NS, 0, 9.95)
    assert [line for line, _ in memory.records] == expected
    assert last.records == len(expected)
    assert last.elapsed_s == 9.95
    stamps = [timestamp_ms for _, timestamp_ms in memory.records]
    assert stamps == sorted(stamps)
    assert len(set(stamps)) == pytest.approx(100, abs=3)


def test_deploys_are_events_keyed_by_service() -> None:
    """A deploy goes to its own topic."""
    memory, last, _ = play(Clock(), 5)
    assert memory.events == [("deploys", b"chat", deploys(SCENARIO, START_NS, 0, 5)[0])]
    assert last.deploys == 1


def test_reports_regularly_and_when_something_happens() -> None:
    """Reports come every five seconds, and at once when the scenario changes."""
    _, _, reports = play(Clock(), 20)
    times = [round(report.elapsed_s, 1) for report in reports]
    assert times == [2.1, 4.1, 7.1, 12.1, 17.1]
    assert [report.happened for report in reports[:3]] == [
        ("deploy of v2",),
        ("decode becomes 3 times slower",),
        ("decode is itself again",),
    ]
    assert "decode is itself again" in str(reports[2])


def test_catches_up_in_bounded_steps_after_a_stall() -> None:
    """After the machine slept, everything is published, never more than a second at once."""
    memory, _, _ = play(Clock(stall_s=30), 40)
    assert [line for line, _ in memory.records] == records(SCENARIO, START_NS, 0, 40)
    assert max(memory.sizes) < 2 * SCENARIO.rate


def test_stops_when_told() -> None:
    """Without a duration it runs until the wait says stop, and loses nothing before that."""
    memory, last, _ = play(Clock(stop_after_s=3), None)
    assert last.elapsed_s == pytest.approx(2.9)
    assert [line for line, _ in memory.records] == records(SCENARIO, START_NS, 0, 2.9)


def test_a_run_reaches_the_broker(tmp_path: Path) -> None:
    """The topics hold exactly what was reported as published."""
    clock = Clock()
    with EmbeddedBroker(log_path=tmp_path / "broker.log") as broker:
        config = client_config(broker.bootstrap)
        pace = Pace(now_ns=clock.now_ns, wait=clock.wait)
        create_topics(config, {"r": 2, "d": 2})
        last = run(config, ScenarioTraffic(SCENARIO), Topics("r", "d"), duration_s=3, pace=pace)
        consumer = Consumer({**config, "group.id": "test"})
        consumer.assign([TopicPartition("r", p, OFFSET_BEGINNING) for p in (0, 1)])
        lines: list[bytes] = []
        for _ in range(60):
            for message in consumer.consume(100, timeout=1.0):
                lines += message.value().split(b"\n")
            if len(lines) >= last.records:
                break
        consumer.close()
    assert sorted(lines) == sorted(records(SCENARIO, START_NS, 0, 3))
    assert last.records == len(lines)
