"""The watch over one service: segments once each, ticks by event time, state to and fro."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from requests_of import SECOND_NS, T0_NS
from stage_segments import RATE, SOURCE, second

from tailbudget.schemas.anomalies import Anomaly
from tailbudget.schemas.errors import ReleaseError, WireError
from tailbudget.schemas.sections import ColdWindow
from tailbudget.streams.anomaly_watch import MOST_WAITING, AnomalyWatch


def play(
    watch: AnomalyWatch, seconds: Sequence[int], slow: float = 1.0, cut: int = 1
) -> Iterator[Anomaly]:
    """Give the watch so many seconds at once, and let it score them."""
    for at in range(0, len(seconds), cut):
        for number in seconds[at : at + cut]:
            watch.take(second(number, slow))
        last = seconds[min(at + cut, len(seconds)) - 1]
        yield from watch.step(T0_NS + (last + 1) * SECOND_NS, watch.waiting())


@pytest.fixture(scope="module")
def learnt() -> bytes:
    """The state of a watch that has seen two minutes."""
    watch = AnomalyWatch("chat")
    assert list(play(watch, range(120))) == []
    return watch.snapshot()()


@pytest.mark.parametrize("cut", [1, 5])
def test_a_slower_stage_is_found(learnt: bytes, cut: int) -> None:
    """Within seconds, also where event time jumps, as in a backlog."""
    watch = AnomalyWatch.load(learnt)
    found = list(play(watch, range(120, 130), slow=1.5, cut=cut))
    assert [(one.stage, one.phase) for one in found] == [("prefill", "started")]
    assert found[0].at_ns - (T0_NS + 120 * SECOND_NS) < 4 * SECOND_NS
    assert found[0].cohorts == ("route=a",)
    assert watch.unwritten == found
    assert watch.open == {"prefill": found[0].started_ns}


def test_a_segment_is_scored_once(learnt: bytes) -> None:
    """One that comes again, before or after a restart, changes nothing."""
    watch = AnomalyWatch.load(learnt)
    watch.take(second(120))
    assert watch.floor() == 120
    assert watch.has_waiting
    watch.waiting()
    watch.take(second(120))
    assert not watch.has_waiting
    again = AnomalyWatch.load(watch.snapshot()())
    for number in range(121):
        again.take(second(number))
    assert not again.has_waiting
    assert again.floor() is None


def test_the_floor_covers_what_no_saved_state_has() -> None:
    """Until a snapshot is safe, the panes topic must not be committed past what is in it."""
    watch = AnomalyWatch("chat")
    assert watch.floor() is None
    watch.take(second(3))
    watch.waiting()
    watch.take(second(4))
    make = watch.snapshot()
    assert watch.floor() == 3
    watch.saved()
    assert watch.floor() == 4
    again = AnomalyWatch.load(make())
    again.take(second(3))
    assert not again.has_waiting
    again.take(second(4))
    assert again.has_waiting
    assert again.floor() == 4


def test_a_restart_in_an_anomaly_goes_on_with_it(learnt: bytes) -> None:
    """What was said is not said again; its end has the start that was said."""
    watch = AnomalyWatch.load(learnt)
    (began,) = play(watch, range(120, 130), slow=1.5)
    again = AnomalyWatch.load(watch.snapshot()())
    assert again.unwritten == [began]
    ended = [one for one in play(again, range(130, 150)) if one.phase == "ended"]
    assert [one.started_ns for one in ended] == [began.started_ns]
    assert list(play(again, range(150, 160))) == []


def test_nothing_is_scored_in_a_cold_window(learnt: bytes) -> None:
    """From the deploy on until its window ends; what was before it is scored."""
    start_ns = T0_NS + 125 * SECOND_NS
    cold = ColdWindow(start_ns, start_ns + 20 * SECOND_NS, "v2", "deploy")
    watch = AnomalyWatch.load(learnt)
    watch.cool([cold])
    assert list(play(watch, range(120, 124))) == []
    assert list(play(watch, range(125, 144), slow=2.0)) == []
    assert watch.guard.counts["cold"] > 100
    found = list(play(watch, range(146, 156), slow=2.0))
    assert [one.phase for one in found] == ["started"]


def test_the_warm_up_is_learnt_from_deploys(learnt: bytes) -> None:
    """Two deploys, cold for ten and for fifteen seconds: a minute was too long a window."""
    watch = AnomalyWatch.load(learnt)
    windows = [
        ColdWindow(at_ns, at_ns + 60 * SECOND_NS, "v2", "deploy")
        for at_ns in (T0_NS + 125 * SECOND_NS, T0_NS + 225 * SECOND_NS)
    ]
    found = []
    for window, cold_s in zip(windows, (10, 15), strict=True):
        watch.cool(windows)
        first = (window.start_ns - T0_NS) // SECOND_NS
        found += list(play(watch, range(first, first + cold_s), slow=2.0))
        found += list(play(watch, range(first + cold_s, first + 90)))
    assert found == []
    assert [round(s) for s in watch.warm_ups.lengths_s.values()] == [10, 15]
    assert AnomalyWatch.load(watch.snapshot()()).warm_ups.known_min == 0.5


def test_what_waits_is_bounded_and_counted() -> None:
    """Event time that stands still lets samples pile up; which ones stay is chance."""
    watch = AnomalyWatch("chat")
    for number in range(MOST_WAITING // 200 + 40):
        watch.take(second(number, rate=200))
    waiting = sum(map(len, watch.waiting()))
    assert waiting <= MOST_WAITING
    assert watch.counts["too many waiting"] > 0


def test_what_comes_much_later_is_counted_and_not_scored(learnt: bytes) -> None:
    """A log that is replayed under the service's name is not its present."""
    watch = AnomalyWatch.load(learnt)
    list(play(watch, [200]))
    late = replace(second(5, slow=9.0), ends={SOURCE: 10**9})
    watch.take(late)
    assert watch.step(T0_NS + 202 * SECOND_NS, watch.waiting()) == []
    assert watch.counts["late"] == RATE
    assert watch.now_ns == T0_NS + 201 * SECOND_NS


def test_what_event_time_has_not_reached_waits(learnt: bytes) -> None:
    """A second source may be ahead; its requests are scored when their time comes."""
    watch = AnomalyWatch.load(learnt)
    watch.take(second(130))
    watch.step(T0_NS + 121 * SECOND_NS, watch.waiting())
    assert watch.has_waiting
    before = watch.now_ns
    watch.step(T0_NS + 131 * SECOND_NS, watch.waiting())
    assert not watch.has_waiting
    assert watch.now_ns > before


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\xff\xff\xff\x7f{}"])
def test_damaged_states_are_refused(learnt: bytes, damage: bytes) -> None:
    """Whatever the bytes are; and a state of another version says so."""
    with pytest.raises(WireError):
        AnomalyWatch.load(damage)
    with pytest.raises(WireError):
        AnomalyWatch.load(learnt[:-5])
    with pytest.raises(ReleaseError):
        AnomalyWatch.load(learnt.replace(b"watch/1", b"watch/9"))
