"""Which segments count, one rule at a time; the properties suite covers all orders."""

from __future__ import annotations

from requests_of import T0_NS, columns_of, summary_of

from tailbudget.schemas import wire
from tailbudget.streams.assembly import Assembly
from tailbudget.streams.protocol import Mark, Segment, Span

SOURCE = "requests:0:1"


def segment(start: int, end: int, *, generation: int = 1, part: int = 0, parts: int = 1) -> Segment:
    columns = columns_of([5.0] * (end - start), ids=range(start, end))
    body = wire.encode(summary_of(columns))
    return Segment((Span(SOURCE, start, end, T0_NS),), generation, part, parts, "chat", body)


def joint(generation: int, **spans: tuple[int, int]) -> Segment:
    """Return what a worker sends of several sources together."""
    columns = columns_of([5.0] * sum(end - start for start, end in spans.values()))
    return Segment(
        tuple(Span(source, *span, T0_NS) for source, span in spans.items()),
        generation, 0, 1, "chat", wire.encode(summary_of(columns)),
    )  # fmt: skip


def test_a_segment_is_held_until_the_next_proves_it() -> None:
    """Held data can be looked at; the segment that starts at its end folds it."""
    assembly = Assembly()
    assert assembly.receive(0, segment(0, 10)) == []
    assert [int(s.requests.sum()) for s in assembly.held("chat")] == [10]
    (folded,) = assembly.receive(1, segment(10, 12))
    assert (folded.service, folded.ends, folded.offset) == ("chat", {SOURCE: 10}, 0)


def test_a_mark_proves_without_data() -> None:
    """The last segment before a silence counts once its owner marks its end."""
    assembly = Assembly()
    assembly.receive(0, segment(0, 10))
    assert [f.ends for f in assembly.receive(1, Mark(SOURCE, 1, 10, T0_NS))] == [{SOURCE: 10}]
    assert list(assembly.held("chat")) == []


def test_a_new_owner_drops_what_was_not_committed() -> None:
    """A mark of a newer generation behind the start of a held segment drops it."""
    assembly = Assembly()
    assembly.receive(0, segment(0, 10))
    assert assembly.receive(1, Mark(SOURCE, 2, 0, T0_NS)) == []
    assert (assembly.dropped, list(assembly.held("chat"))) == (1, [])


def test_an_older_generation_is_ignored() -> None:
    """A worker that lost the partition changes nothing, whatever it still sends."""
    assembly = Assembly()
    assembly.receive(0, Mark(SOURCE, 2, 0, T0_NS))
    assert assembly.receive(1, segment(0, 10, generation=1)) == []
    assert (assembly.ignored, list(assembly.held("chat"))) == (1, [])


def test_parts_of_one_segment_fold_together() -> None:
    """A summary that was cut into messages is folded as one, however often a part comes."""
    assembly = Assembly()
    assembly.receive(0, segment(0, 4, part=0, parts=2))
    assembly.receive(1, segment(0, 4, part=1, parts=2))
    assembly.receive(2, segment(0, 4, part=1, parts=2))
    (folded,) = assembly.receive(3, Mark(SOURCE, 1, 4, T0_NS))
    assert len(folded.summaries) == 2


def test_the_floor_covers_held_segments_and_marks() -> None:
    """A restart must read held segments again, and the mark that fences off the past."""
    assembly = Assembly()
    assert assembly.floor() is None
    assembly.receive(4, Mark(SOURCE, 1, 0, T0_NS))
    assembly.receive(5, segment(0, 10))
    assert assembly.floor() == 4
    assert assembly.floor(gone={SOURCE}) == 5


def test_the_proof_of_one_source_serves_all_that_was_sent_with_it() -> None:
    """Ends that were committed in one request count together, and once."""
    assembly = Assembly()
    assembly.receive(0, joint(1, a=(0, 10), b=(5, 9)))
    (folded,) = assembly.receive(1, Mark("a", 2, 10, T0_NS))
    assert folded.ends == {"a": 10, "b": 9}
    assert assembly.receive(2, Mark("b", 2, 9, T0_NS)) == []
    assert list(assembly.held("chat")) == []


def test_what_one_source_proves_lost_is_dropped_for_all() -> None:
    """A new owner of one source that starts at the old offset drops what was sent together."""
    assembly = Assembly()
    assembly.receive(0, joint(1, a=(0, 10), b=(5, 9)))
    assert assembly.receive(1, Mark("b", 2, 5, T0_NS)) == []
    assert (assembly.dropped, list(assembly.held("chat"))) == (1, [])
    assert assembly.receive(2, Mark("a", 2, 0, T0_NS)) == []


def test_a_past_owner_of_one_source_is_ignored_for_all() -> None:
    """Its commit is refused as a whole, so what it sent counts for none of its sources."""
    assembly = Assembly()
    assembly.receive(0, Mark("b", 2, 5, T0_NS))
    assert assembly.receive(1, joint(1, a=(0, 10), b=(5, 9))) == []
    assert (assembly.ignored, list(assembly.held("chat"))) == (1, [])
    assert assembly.receive(2, Mark("a", 1, 10, T0_NS)) == []


def test_joint_segments_are_looked_at_once() -> None:
    """What several sources hold together is one summary, and one part of the bound of memory."""
    assembly = Assembly()
    message = joint(1, a=(0, 10), b=(5, 9))
    assembly.receive(3, message)
    assert [int(s.requests.sum()) for s in assembly.held("chat")] == [14]
    assert assembly.held_bytes == len(message.body)
    assert assembly.floor() == 3
