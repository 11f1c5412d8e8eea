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
SOURCES = ("requests:0:1", "requests:1:1", "requests:2:1")
SERVICES = ("a", "b", "c")


def service_of(source: str, offset: int) -> str:
    """Spread the records unevenly: long runs without one of the services."""
    return SERVICES[(offset // 7 + SOURCES.index(source)) % 3]


def value_of(source: str, offset: int) -> int:
    """Return the latency of a record, in ms: no two sums of several are alike."""
    return 1 + offset + 1000 * SOURCES.index(source)


def segments(spans: dict[str, tuple[int, int]], generation: int) -> list[protocol.Segment]:
    """Return what a worker sends of its sources' segments: a message for each service."""
    messages = []
    for service in SERVICES:
        records = [
            (source, offset)
            for source, span in spans.items()
            for offset in range(*span)
            if service_of(source, offset) == service
        ]
        if not records:
            continue
        columns = columns_of(
            [float(value_of(*record)) for record in records],
            ids=[value_of(*record) for record in records],
            ts_ns=[T0_NS + offset * SECOND_NS for _, offset in records],
            service=service,
        )
        having = sorted({source for source, _ in records})
        told = tuple(protocol.Span(source, *spans[source], T0_NS) for source in having)
        body = wire.encode(summary_of(columns))
        messages.append(protocol.Segment(told, generation, 0, 1, service, body))
    return messages


@dataclass
class Ingest:
    """One worker's sources: sends their segments, commits them at once, or dies in between."""

    generation: int
    committed: dict[str, int]
    sent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sent = dict(self.committed)


@dataclass
class World:
    """A log, committed offsets, a database, an audit agent, and the present and past owners."""

    committed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    log: list[protocol.Segment | protocol.Mark] = field(default_factory=list)
    database: dict[tuple[str, int], StoredPane] = field(default_factory=dict)
    audit_committed: int = 0
    generation: int = 1

    def __post_init__(self) -> None:
        self.owners = [Ingest(1, dict(self.committed))]
        self.past: list[Ingest] = []
        self.restart_audit()
        self.mark()

    def mark(self) -> None:
        for owner in self.owners:
            self.mark_of(owner)

    def mark_of(self, owner: Ingest) -> None:
        for source, offset in owner.committed.items():
            self.log.append(protocol.Mark(source, owner.generation, offset, T0_NS))

    def send(self, length: int) -> None:
        for number, owner in enumerate(self.owners):
            spans = {
                source: (start, min(start + length + 3 * number, RECORDS))
                for source, start in owner.committed.items()
                if owner.sent[source] == start < RECORDS
            }
            self.log += segments(spans, owner.generation)
            owner.sent |= {source: end for source, (_, end) in spans.items()}

    def work(self, length: int) -> None:
        """Send and commit, as owners do that nothing happens to."""
        self.send(length)
        self.commit()

    def commit(self) -> None:
        for owner in self.owners:
            self.commit_of(owner)

    def commit_of(self, owner: Ingest) -> None:
        owner.committed = dict(owner.sent)
        self.committed |= owner.committed

    def commit_one(self) -> None:
        """One worker commits, the others are slower."""
        self.commit_of(self.owners[0])

    def take_over(self, groups: int) -> None:
        """The owners die or are thought dead; the next ones start at the committed offsets.

        The sources are dealt out anew, to `groups` workers, each of which marks before the next.
        """
        self.past = self.owners
        self.generation += 1
        self.owners = [
            Ingest(
                self.generation, {source: self.committed[source] for source in SOURCES[n::groups]}
            )
            for n in range(groups)
        ]
        self.mark()

    def take_over_slowly(self, length: int) -> None:
        """As above, and a past owner sends while only some of the new ones have marked."""
        log, self.log = self.log, []
        self.take_over(1 + length % 3)
        marks, self.log = self.log, log
        half = len(marks) // 2
        self.log += marks[:half]
        self.zombie(length)
        self.log += marks[half:]

    def zombie(self, length: int) -> None:
        """Past owners that do not know it yet send once more; their commits are refused."""
        for past in self.past:
            spans = {
                source: (start, min(start + length, RECORDS))
                for source, start in past.committed.items()
            }
            self.log += segments(spans, past.generation)

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
        while min(self.committed.values()) < RECORDS:
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
    st.tuples(st.just("commit_one"), st.none()),
    st.tuples(st.just("take_over"), st.integers(1, 3)),
    st.tuples(st.just("take_over_slowly"), st.integers(1, 30)),
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
    records = [(source, offset) for source in SOURCES for offset in range(RECORDS)]
    mine = {s: [value_of(*r) for r in records if service_of(*r) == s] for s in SERVICES}
    assert world.counted() == {s: len(found) for s, found in mine.items()}
    assert world.sums() == {s: sum(found) * 10**6 for s, found in mine.items()}


def test_a_restarted_audit_still_knows_who_was_fenced_off() -> None:
    """A segment of a past owner, read after a restart, is ignored though its panes are durable."""
    world = World()
    world.take_over(1)
    world.work(20)
    world.work(20)
    world.mark()
    world.consume(len(world.log))
    world.flush(evict=False)
    world.restart_audit()
    world.zombie(40)
    world.finish()
    assert sum(world.counted().values()) == RECORDS * len(SOURCES)
