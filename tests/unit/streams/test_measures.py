"""What a worker measures of itself: ages of segments, times of flushes, newest verdicts."""

from __future__ import annotations

from dataclasses import replace

from faust.types import TP

from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.streams.flush_times import BOUNDS_S, FlushTimes
from tailbudget.streams.newest_verdicts import NewestVerdicts
from tailbudget.streams.segment_ages import SegmentAges

A, B = TP("requests", 0), TP("requests", 1)
ROW = AuditRow("chat", 60, 10, 1, "ok", 500, 1, p99_ms=90.0, payload="x" * 1000)


def test_a_segment_ages_until_it_is_committed() -> None:
    """It counts from its first message, over the sending, and not beyond the commit."""
    ages = SegmentAges()
    assert ages.age_s(A, 5.0) == 0.0
    ages.take(A, 10.0)
    ages.take(A, 12.0)
    ages.cut([A])
    ages.take(A, 13.0)
    assert ages.age_s(A, 15.0) == 5.0
    ages.committed([A])
    assert ages.age_s(A, 15.0) == 2.0
    assert ages.age_s(B, 15.0) == 0.0


def test_a_segment_that_is_sent_again_keeps_its_age() -> None:
    """A cut behind one that was not committed does not make the oldest message younger."""
    ages = SegmentAges()
    ages.take(A, 1.0)
    ages.cut([A])
    ages.take(A, 4.0)
    ages.cut([A, B])
    assert ages.age_s(A, 6.0) == 5.0
    ages.clear()
    assert ages.age_s(A, 6.0) == 0.0


def test_flushes_count_in_their_bucket_and_above() -> None:
    """A time on a bound counts within it; the last bucket has all."""
    times = FlushTimes()
    for took_s in (BOUNDS_S[0], BOUNDS_S[1] + 1e-9, 1e6):
        times.add(took_s, at_s=took_s)
    status = times.status()
    assert [n for _, n in status["buckets"]][:3] == [1, 1, 2]
    assert status["buckets"][-1] == [None, 3]
    assert status["at_s"] == 1e6


def test_the_newest_verdict_holds_for_its_window() -> None:
    """A later one replaces it, silence and another owner end it, and its payload is not kept."""
    newest = NewestVerdicts()
    newest.note(ROW, 100.0)
    newest.note(replace(ROW, end_ns=20, verdict="breach"), 110.0)
    newest.note(replace(ROW, window_s=300), 110.0)
    assert [(v["window_s"], v["verdict"]) for v in newest.current(["chat"], 170.0)] == [
        (60, "breach"),
        (300, "ok"),
    ]
    assert [v["window_s"] for v in newest.current(["chat"], 170.1)] == [300]
    assert newest.current(["other"], 110.0) == []
    assert "payload" not in newest.current(["chat"], 110.0)[0]
    newest.clear()
    assert newest.current(["chat"], 110.0) == []
