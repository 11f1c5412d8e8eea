"""Which segments count, one rule at a time; the properties suite covers all orders."""

from __future__ import annotations

from requests_of import T0_NS, columns_of, summary_of

from tailbudget.schemas import wire
from tailbudget.streams.assembly import Assembly
from tailbudget.streams.protocol import Mark, Segment

SOURCE = "requests:0:1"


def segment(start: int, end: int, *, generation: int = 1, part: int = 0, parts: int = 1) -> Segment:
    columns = columns_of([5.0] * (end - start), ids=range(start, end))
    body = wire.encode(summary_of(columns))
    return Segment(SOURCE, generation, start, end, part, parts, "chat", T0_NS, body)


def test_a_segment_is_held_until_the_next_proves_it() -> None:
    """Held data can be looked at; the segment that starts at its end folds it."""
    assembly = Assembly()
    assert assembly.receive(0, segment(0, 10)) == []
    assert [int(s.requests.sum()) for s in assembly.held("chat")] == [10]
    (folded,) = assembly.receive(1, segment(10, 12))
    assert (folded.service, folded.source, folded.end, folded.offset) == ("chat", SOURCE, 10, 0)


def test_a_mark_proves_without_data() -> None:
    """The last segment before a silence counts once its owner marks its end."""
    assembly = Assembly()
    assembly.receive(0, segment(0, 10))
    assert [folded.end for folded in assembly.receive(1, Mark(SOURCE, 1, 10, T0_NS))] == [10]
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
