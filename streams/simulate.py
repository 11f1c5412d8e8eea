"""Publish a simulated service's records as they happen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Event
from typing import Final, Protocol

from tailbudget.streams.kafka import ClientConfig
from tailbudget.streams.publish import Publisher

_STEP_NS: Final = 1_000_000_000
"""After a pause of ours, what was missed is generated in steps of a second."""


@dataclass(frozen=True, slots=True)
class Topics:
    """Where a simulation publishes.

    Attributes:
        requests: topic of the records.
        deploys: topic of the deploy events.
    """

    requests: str
    deploys: str


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock of a simulation, and how often it does something.

    Attributes:
        tick_s: seconds between two publications.
        report_s: seconds between two reports; what happens is reported at once besides.
        now_ns: reads the clock, nanoseconds since the epoch.
        wait: waits that many seconds, or less; true says that the simulation shall stop.
    """

    tick_s: float = 0.1
    report_s: float = 5.0
    now_ns: Callable[[], int] = time.time_ns
    wait: Callable[[float], bool] = field(default_factory=lambda: Event().wait)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a simulation is.

    Attributes:
        elapsed_s: since its start.
        records: published so far.
        deploys: deploy events published so far.
        happened: what began or ended since the last tick, for a person.
    """

    elapsed_s: float
    records: int
    deploys: int
    happened: tuple[str, ...] = ()

    def __str__(self) -> str:
        rate = self.records / self.elapsed_s if self.elapsed_s else 0.0
        text = f"{self.elapsed_s:5.0f} s  {self.records:,} requests ({rate:,.0f}/s)"
        return "; ".join((text, *self.happened))


class Sink(Protocol):
    """The part of `Publisher` that a simulation uses."""

    def publish(self, topic: str, records: Iterable[tuple[bytes, int]], /) -> int:
        """Send (record, timestamp_ms) pairs; return how many."""

    def send(self, topic: str, value: bytes, /, *, timestamp_ms: int, key: bytes) -> None:
        """Send one message."""


class Played(Protocol):
    """A service that is simulated; each interval counts from the start, its end exclusive."""

    @property
    def service(self) -> str:
        """Name of the service."""

    def records(self, start_ns: int, t0_s: float, t1_s: float, /) -> list[bytes]:
        """Return the records of an interval, as JSON, in order of time."""

    def deploys(self, start_ns: int, t0_s: float, t1_s: float, /) -> list[bytes]:
        """Return the deploy events of an interval, as JSON."""

    def happenings(self, start_ns: int, t0_s: float, t1_s: float, /) -> tuple[str, ...]:
        """Say for a person what happens in an interval."""


class Simulation:
    """One run of a simulated service: publishes what is due, and counts it.

    Attributes:
        start_ns: when the scenario began, nanoseconds since the epoch.
        done_ns: everything before this moment, counted from the start, is published.
    """

    def __init__(self, sink: Sink, played: Played, topics: Topics, start_ns: int) -> None:
        self.start_ns = start_ns
        self.done_ns = 0
        self._sink = sink
        self._played = played
        self._topics = topics
        self._records = 0
        self._deploys = 0

    def advance(self, due_ns: int, timestamp_ms: int) -> Progress:
        """Publish what happens up to `due_ns` after the start. May block, as `Publisher.send`."""
        span = (self.done_ns / 1e9, due_ns / 1e9)
        stamped = [(line, timestamp_ms) for line in self._played.records(self.start_ns, *span)]
        self._records += self._sink.publish(self._topics.requests, stamped)
        for event in self._played.deploys(self.start_ns, *span):
            key = self._played.service.encode()
            self._sink.send(self._topics.deploys, event, timestamp_ms=timestamp_ms, key=key)
            self._deploys += 1
        self.done_ns = due_ns
        happened = self._played.happenings(self.start_ns, *span)
        return Progress(span[1], self._records, self._deploys, happened)


def run(
    config: ClientConfig,
    played: Played,
    topics: Topics,
    *,
    duration_s: float | None = None,
    pace: Pace | None = None,
    report: Callable[[Progress], None] = lambda _: None,
) -> Progress:
    """Publish live until the end, into topics that exist.

    Raises:
        BrokerError: no broker answers, or it did not take everything.
    """
    pace = pace or Pace()
    with Publisher(config) as publisher:
        simulation = Simulation(publisher, played, topics, pace.now_ns())
        return run_live(simulation, pace, duration_s, report)


def run_live(
    simulation: Simulation,
    pace: Pace,
    duration_s: float | None,
    report: Callable[[Progress], None],
) -> Progress:
    """Publish each record once its time has come, stamped with the time of publication.

    Ends when the duration is over (None never ends) or `pace.wait` says so.
    """
    tick_ns = round(pace.tick_s * 1e9)
    end_ns = None if duration_s is None else round(duration_s * 1e9)
    progress = Progress(0.0, 0, 0)
    reported_s = 0.0
    while end_ns is None or simulation.done_ns < end_ns:
        next_ns = simulation.start_ns + simulation.done_ns + tick_ns
        if pace.wait(max(next_ns - pace.now_ns(), 0) / 1e9):
            break
        elapsed_ns = pace.now_ns() - simulation.start_ns
        due_ns = min(elapsed_ns // tick_ns * tick_ns, simulation.done_ns + _STEP_NS)
        due_ns = due_ns if end_ns is None else min(due_ns, end_ns)
        if due_ns <= simulation.done_ns:
            continue
        progress = simulation.advance(due_ns, pace.now_ns() // 1_000_000)
        if progress.happened or progress.elapsed_s - reported_s >= pace.report_s:
            report(progress)
            reported_s = progress.elapsed_s
    return progress
