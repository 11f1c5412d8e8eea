"""Whatever dies whenever, each record counts once: the rules of segments, marks and frontiers."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from requests_of import SECOND_NS, T0_NS, columns_of, summary_of

from tailbudget.schemas import wire
from tailbudget.schemas.rows import StoredPane
from tailbudget.streams import protocol
from tailbudget.streams.assembly import Assembly
from tailbudget.streams.pane_store import PaneStore

RECORDS = 60
SOURCE = "requests:0:1"
SERVICES = ("a", "b", "c")


def service_of(offset: int) -> str:
    """Spread the records unevenly: long runs without one of the services."""
    return SERVICES[(offset // 7) % 3]


def segment(start: int, end: int, generation: int) -> list[protocol.Segment]:
    messages = []
    for service in SERVICES:
        offsets = [o for o in range(start, end) if service_of(o) == service]
        if not offsets:
            continue
        columns = columns_of(
            [1.0 + o for o in offsets],
            ids=offsets,
            ts_ns=[T0_NS + o * SECOND_NS for o in offsets],
            service=service,
        )
        body = wire.encode(summary_of(columns))
        messages.append(
            protocol.Segment(SOURCE, generation, start, end, 0, 1, service, T0_NS, body)
        )
    return messages


@dataclass
class Ingest:
    """One owner of the source: sends a segment, commits it, marks it, or dies in between."""

    generation: int
    committed: int
    sent: int = 0

    def __post_init__(self) -> None:
        self.sent = self.committed


@dataclass
class World:
    """A log, a committed offset, a database, an audit agent, and the present and past owners."""

    committed: int = 0
    log: list[protocol.Segment | protocol.Mark] = field(default_factory=list)
    database: dict[tuple[str, int], StoredPane] = field(default_factory=dict)
    audit_committed: int = 0
    generation: int = 1

    def __post_init__(self) -> None:
        self.owner = Ingest(1, 0)
        self.past: list[Ingest] = []
        self.restart_audit()
        self.mark()

    def mark(self) -> None:
        self.log.append(protocol.Mark(SOURCE, self.owner.generation, self.owner.committed, T0_NS))

    def send(self, length: int) -> None:
        if self.owner.sent == self.owner.committed < RECORDS:
            end = min(self.owner.committed + length, RECORDS)
            self.log += segment(self.owner.committed, end, self.owner.generation)
            self.owner.sent = end

    def work(self, length: int) -> None:
        """Send and commit, as an owner does that nothing happens to."""
        self.send(length)
        self.commit()

    def commit(self) -> None:
        self.committed = self.owner.committed = self.owner.sent

    def take_over(self) -> None:
        """The owner dies or is thought dead; the next one starts at the committed offset."""
        self.past.append(self.owner)
        self.generation += 1
        self.owner = Ingest(self.generation, self.committed)
        self.mark()

    def zombie(self, length: int) -> None:
        """A past owner that does not know it yet sends once more; its commit is refused."""
        if self.past:
            past = self.past[-1]
            end = min(past.committed + length, RECORDS)
            self.log += segment(past.committed, end, past.generation)

    def restart_audit(self) -> None:
        self.assembly = Assembly()
        self.stores: dict[str, PaneStore] = {}
        self.next = self.audit_committed

    def consume(self, count: int) -> None:
        for offset in range(self.next, min(self.next + count, len(self.log))):
            for folded in self.assembly.receive(offset, self.log[offset]):
                store = self.stores.get(folded.service)
                if store is None:
                    known = [pane for name, pane in self.database if name == folded.service]
                    store = PaneStore(folded.service, pane_s=10, known_ns=max(known, default=None))
                    self.stores[folded.service] = store
                missing = store.missing([folded])
                store.load(
                    missing,
                    {
                        pane: self.database[folded.service, pane]
                        for pane in missing
                        if (folded.service, pane) in self.database
                    },
                )
                store.fold(folded)
            self.next = offset + 1

    def flush(self, *, evict: bool) -> None:
        for service, store in self.stores.items():
            for row in store.dirty(self.next):
                self.database[service, row.pane_ns] = row
            store.written()
            if evict:
                store.evict(T0_NS + 10**18)
        floors = [self.assembly.floor(), self.next]
        floors += [store.floor() for store in self.stores.values()]
        self.audit_committed = min(floor for floor in floors if floor is not None)

    def finish(self) -> None:
        while self.owner.committed < RECORDS:
            self.send(RECORDS)
            self.commit()
        self.mark()
        self.consume(len(self.log))
        self.flush(evict=False)

    def counted(self) -> dict[str, int]:
        counts = dict.fromkeys(SERVICES, 0)
        for (service, _), row in self.database.items():
            counts[service] += int(row.summary.requests.sum())
        return counts

    def sums(self) -> dict[str, int]:
        sums = dict.fromkeys(SERVICES, 0)
        for (service, _), row in self.database.items():
            sums[service] += int(row.summary.sum_ns[:, 0].sum())
        return sums


STEPS = st.one_of(
    st.tuples(st.just("work"), st.integers(1, 12)),
    st.tuples(st.just("work"), st.integers(1, 12)),
    st.tuples(st.just("send"), st.integers(1, 25)),
    st.tuples(st.just("commit"), st.none()),
    st.tuples(st.just("mark"), st.none()),
    st.tuples(st.just("mark"), st.none()),
    st.tuples(st.just("take_over"), st.none()),
    st.tuples(st.just("zombie"), st.integers(1, 30)),
    st.tuples(st.just("consume"), st.integers(1, 12)),
    st.tuples(st.just("flush"), st.booleans()),
    st.tuples(st.just("restart_audit"), st.none()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, min_size=25, max_size=70))
def test_every_record_counts_once_whatever_dies(steps: list[tuple[str, int | None]]) -> None:
    """Any order of sends, commits, takeovers, zombies, flushes and restarts ends exact."""
    world = World()
    for name, argument in steps:
        if name == "flush":
            world.flush(evict=bool(argument))
        elif argument is None:
            getattr(world, name)()
        else:
            getattr(world, name)(argument)
    world.finish()
    offsets = {s: [o for o in range(RECORDS) if service_of(o) == s] for s in SERVICES}
    assert world.counted() == {s: len(found) for s, found in offsets.items()}
    assert world.sums() == {s: sum(1 + o for o in found) * 10**6 for s, found in offsets.items()}


def test_a_restarted_audit_still_knows_who_was_fenced_off() -> None:
    """A segment of a past owner, read after a restart, is ignored though its panes are durable."""
    world = World()
    world.take_over()
    world.work(20)
    world.work(20)
    world.mark()
    world.consume(len(world.log))
    world.flush(evict=False)
    world.restart_audit()
    world.zombie(40)
    world.finish()
    assert sum(world.counted().values()) == RECORDS
