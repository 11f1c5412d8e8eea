"""CPU of each step from messages to a verdict, without a broker, a database or an event loop.

    python tests/bench/steps.py --rate 50000 --services 4 --cohorts 24

Packed messages of some seconds, on 4 partitions, go through the decoder, the segments of a tick,
the wire, the panes and the windows of an audit, in one thread. The clock is that of the thread,
so it compares where other work shares the cores; polars' own thread is in the last line alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from faust.types import TP
from rich.console import Console
from rich.table import Table
from stamped import Stamper

from tailbudget.models.select import encode_parts
from tailbudget.schemas.settings import Settings
from tailbudget.streams import protocol
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.assembly import Assembly
from tailbudget.streams.dedup import Dedup
from tailbudget.streams.gathering import Gathering
from tailbudget.streams.intake import Intake
from tailbudget.streams.pane_store import PaneStore
from tailbudget.streams.rules import rules
from tailbudget.streams.segment_summaries import SegmentSummaries
from tailbudget.streams.service_audit import ServiceAudit
from tailbudget.streams.sources import decoder

TOPIC = "requests"
PARTITIONS = 4
PACK = 150
SECOND_NS = 1_000_000_000


@dataclass(slots=True)
class Clock:
    """CPU seconds of this thread, by step.

    Attributes:
        spent: seconds of each step.
        times: how often each was taken.
    """

    spent: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    times: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count what is done meanwhile."""
        began = time.thread_time()
        yield
        self.spent[name] += time.thread_time() - began
        self.times[name] += 1


class Pipeline:
    """What a worker does between its topics, step by step."""

    def __init__(self, clock: Clock) -> None:
        values = {"kafka": {"requests": [{"topic": TOPIC}]}, "stream": {"max_cohorts": 5000}}
        self._settings = Settings.model_validate({**values, "defaults": {"slo": "p95=300,p99=500"}})
        self._clock = clock
        self._decoder = decoder("native", rules(self._settings, self._settings.kafka.requests[0]))
        self._gathering = Gathering()
        self._summaries = SegmentSummaries(self._settings)
        self._assembly = Assembly()
        self._panes: dict[str, PaneStore] = {}
        self._audits: dict[str, ServiceAudit] = {}
        self._sources = {TP(TOPIC, p): self._source(p) for p in range(PARTITIONS)}
        self._offset = 0

    def take(self, number: int, value: bytes, now_ns: int) -> None:
        """Take a message of the next partition."""
        tp = TP(TOPIC, number % PARTITIONS)
        message = SimpleNamespace(value=value, offset=number, timestamp=now_ns // 10**6)
        if self._gathering.add(tp, [message]):
            self._decode(now_ns)

    def tick(self, now_ns: int) -> None:
        """Close the segments, and judge."""
        if self._gathering.topics:
            self._decode(now_ns)
        cut = [(source, source.cut()) for source in self._sources.values()]
        for service in sorted({name for _, pending in cut for name in pending.services}):
            with self._clock.step("summarise"):
                summary = self._summaries.of([pending for _, pending in cut], service)
            with self._clock.step("encode"):
                bodies = encode_parts(summary, 700_000)
            spans = tuple(protocol.Span(s.key, p.start, p.end, s.watermark_ns) for s, p in cut)
            for part, body in enumerate(bodies):
                self._receive(protocol.Segment(spans, 1, part, len(bodies), service, body))
            self._judge(service)

    def flush(self, version: int, before_ns: int) -> None:
        """Make the panes that changed ready to be written."""
        for panes in self._panes.values():
            with self._clock.step("panes to write"):
                panes.dirty(version)
            panes.written()
            panes.evict(before_ns)

    def _decode(self, now_ns: int) -> None:
        with self._clock.step("decode"):
            gathered = self._gathering.take(TOPIC, now_ns)
            shares = gathered.apart(self._decoder.decode(gathered.batch))
        with self._clock.step("repeated and late ones"):
            for share, mine in shares:
                self._sources[share.tp].add(mine, share.end)

    def _receive(self, segment: protocol.Segment) -> None:
        with self._clock.step("decode summaries"):
            folded = self._assembly.receive(self._offset, segment)
        self._offset += 1
        for one in folded:
            panes = self._panes.setdefault(
                one.service, PaneStore(one.service, pane_s=10, known_ns=None)
            )
            with self._clock.step("add to panes"):
                deltas = panes.fold(one)
            with self._clock.step("add to windows"):
                for delta in deltas:
                    self._audit(one.service).add(delta)

    def _judge(self, service: str) -> None:
        held, now_ns = list(self._assembly.held(service)), min(self._assembly.watermarks().values())
        with self._clock.step("rolling audits"):
            self._audit(service).rolling(now_ns, held)
        with self._clock.step("judge"):
            self._audit(service).judge(now_ns, held)

    def _audit(self, service: str) -> ServiceAudit:
        slo = self._settings.service(service).slo
        return self._audits.setdefault(
            service, ServiceAudit(service, slo, pane_s=10, book=AlertBook(service))
        )

    def _source(self, partition: int) -> Intake:
        key = protocol.source_key(TOPIC, partition, 1)
        return Intake(key, 1, 0, 0, 0, 10 * SECOND_NS, 5 * SECOND_NS, Dedup(200_000))


def main() -> int:
    """Run it and print the table."""
    options = _options()
    clock = Clock()
    pipeline = Pipeline(clock)
    stamper = Stamper(options.services, cohorts=options.cohorts, slow=20.0)
    each, now_ns, number, making_s = int(options.rate * options.tick), 1_772_445_600 * 10**9, 0, 0.0
    began_s = time.process_time()
    for turn in range(int(options.seconds / options.tick)):
        made_s = time.process_time()
        times = now_ns + np.arange(each) * int(1e9 / options.rate)
        rows = stamper.batch(times, frozenset())
        values = [b"\n".join(map(bytes, rows[low : low + PACK])) for low in range(0, each, PACK)]
        now_ns += int(options.tick * 1e9)
        making_s += time.process_time() - made_s
        for value in values:
            pipeline.take(number, value, now_ns)
            number += 1
        pipeline.tick(now_ns)
        if turn % max(int(2 / options.tick), 1) == 0:
            pipeline.flush(turn, now_ns - 15 * SECOND_NS)
    whole_s = time.process_time() - began_s - making_s
    Console(width=100).print(_table(clock, whole_s, options))
    return 0


def _table(clock: Clock, whole_s: float, options: argparse.Namespace) -> Table:
    title = f"{options.rate:,.0f} records/s, {options.services} x {options.cohorts} cohorts"
    table = Table(title=title)
    for name in ("step", "CPU ms a second of the stream", "ms each time", "us a record"):
        table.add_column(name, justify="left" if name == "step" else "right")

    def add(name: str, seconds: float, times: int) -> None:
        share = seconds / options.seconds
        figures = (1e3 * share, 1e3 * seconds / times, 1e6 * share / options.rate)
        table.add_row(name, *(f"{figure:.2f}" for figure in figures))

    for name, seconds in sorted(clock.spent.items(), key=lambda pair: -pair[1]):
        add(name, seconds, clock.times[name])
    add("process", whole_s, 1)
    return table


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=50_000, help="records/s")
    parser.add_argument("--services", type=int, default=4)
    parser.add_argument("--cohorts", type=int, default=24, help="cohorts of each service")
    parser.add_argument("--tick", type=float, default=0.25, help="seconds from segment to segment")
    parser.add_argument("--seconds", type=float, default=20, help="seconds of the stream")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
