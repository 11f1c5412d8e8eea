"""The time of a stage is the union of its intervals, whatever the order of their events."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from tailbudget.streams.instrument import spans
from tailbudget.streams.instrument.spans import Spans

STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.booleans()), min_size=1, max_size=60
)
MS = 1_000_000


def ticks(times_ms: list[int]) -> Iterator[int]:
    """Yield the times, the last of them for ever."""
    for time_ms in times_ms:
        yield time_ms * MS
    while True:
        yield times_ms[-1] * MS


@given(STEPS, st.integers(0, 5), st.integers(1, 600))
def test_the_time_of_a_stage_is_its_union(
    steps: list[tuple[int, str, bool]], rest_ms: int, fold_at: int
) -> None:
    """Each millisecond with the stage open counts once, however often the events are folded."""
    at, open_at = 0, {"a": 0, "b": 0}
    wanted, times = {"a": 0, "b": 0}, [0]
    for wait_ms, stage, begins in steps:
        for name, times_open in open_at.items():
            wanted[name] += wait_ms if times_open else 0
        at += wait_ms
        times.append(at)
        open_at[stage] = max(open_at[stage] + (1 if begins else -1), 0)
    for name, times_open in open_at.items():
        wanted[name] += rest_ms if times_open else 0
    clock = ticks([*times, at + rest_ms])
    timed = Spans(lambda: next(clock))
    for number, (_, stage, begins) in enumerate(steps):
        (timed.open if begins else timed.close)(stage)
        if not (number + 1) % fold_at:
            timed._fold()
    assert timed.freeze()
    assert timed.total_ms == at + rest_ms
    found = timed.stage_ms()
    assert {name: found.get(name, 0.0) for name in wanted} == wanted


def test_many_repetitions_take_little_room() -> None:
    """A stage of each token of a long answer is added up on the way, and nothing is lost."""
    clock = itertools.count(0, MS)
    timed = Spans(lambda: next(clock))
    for _ in range(20 * spans.FOLD_AT):
        timed.open("decode")
        timed.close("decode")
        assert len(timed._events) <= spans.FOLD_AT + 1
    timed.freeze()
    assert timed.stage_ms() == {"decode": 20.0 * spans.FOLD_AT}
