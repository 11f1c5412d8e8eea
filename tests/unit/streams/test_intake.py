"""One source partition as ingest sees it: duplicates, late records, and the cut of a segment."""

from __future__ import annotations

from collections.abc import Sequence

from requests_of import PANE_NS, SECOND_NS, T0_NS, columns_of

from tailbudget.schemas import ledger
from tailbudget.schemas.records import Decoded, Rejected
from tailbudget.streams.dedup import Dedup
from tailbudget.streams.intake import Intake


def intake() -> Intake:
    return Intake(
        key="requests:0:1",
        generation=1,
        committed=5,
        start=5,
        position=5,
        pane_ns=PANE_NS,
        grace_ns=10 * SECOND_NS,
        dedup=Dedup(1000),
    )


def decoded(
    ids: Sequence[int], seconds: Sequence[float] | None = None, rejected: Sequence[Rejected] = ()
) -> Decoded:
    times = [T0_NS + int(s * 1e9) for s in (seconds or [0.0] * len(ids))]
    columns = columns_of([5.0] * len(ids), ids=ids, ts_ns=times)
    counts = {("chat", T0_NS + 1, ledger.TOMBSTONE): 2, ("chat", T0_NS, ledger.ACCEPTED): len(ids)}
    return Decoded((columns,), tuple(rejected), counts, frozenset())


def test_a_segment_spans_what_was_read() -> None:
    """The cut has the offsets since the last cut, and begins the next segment behind them."""
    source = intake()
    assert source.empty
    source.add(decoded([1, 2, 3]), end=8)
    pending = source.cut()
    assert (pending.start, pending.end, source.start) == (5, 8, 8)
    assert source.empty
    assert [len(c) for c in pending.columns["chat"]] == [3]
    assert source.committed == 5


def test_a_record_counts_once() -> None:
    """A request id that was seen before, in this poll or an earlier one, is a duplicate."""
    source = intake()
    source.add(decoded([1, 2, 2]), end=8)
    source.add(decoded([2, 3]), end=10)
    pending = source.cut()
    assert sum(len(c) for c in pending.columns["chat"]) == 3
    assert pending.ledger["chat"][T0_NS, ledger.DUPLICATE] == 2


def test_late_is_measured_by_the_source_itself() -> None:
    """A record is late when its pane closed, grace included, before it came in its source."""
    source = intake()
    source.add(decoded([1, 2, 3, 4], [0.0, 19.9, 9.9, 20.1]), end=9)
    source.add(decoded([5, 6], [9.8, 10.5]), end=11)
    found = source.cut().ledger["chat"]
    assert found[T0_NS, ledger.LATE] == 1
    assert source.watermark_ns == T0_NS + int(20.1e9)


def test_what_summaries_count_is_not_counted_twice() -> None:
    """The decoder's ledger goes by panes; accepted records are counted by their summary."""
    source = intake()
    source.add(decoded([1]), end=6)
    found = source.cut().ledger["chat"]
    assert found[T0_NS, ledger.TOMBSTONE] == 2
    assert (T0_NS, ledger.ACCEPTED) not in found


def test_rejected_records_travel_with_their_segment() -> None:
    """What goes to the dead-letter topic is cut with the records around it, once."""
    source = intake()
    source.add(decoded([1], rejected=[Rejected(6, ledger.NOT_JSON, "no", b"x")]), end=7)
    assert [r.offset for r in source.cut().rejected] == [6]
    assert source.cut().rejected == ()
