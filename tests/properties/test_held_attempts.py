"""Wherever a worker dies, its successor holds the same attempts, and each counts once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
from attempts import Try, columns_of_tries
from hypothesis import given, settings
from hypothesis import strategies as st
from requests_of import SECOND_NS

from tailbudget.models.columns import concat, pick
from tailbudget.schemas import ledger
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.streams.held_attempts import HeldAttempts
from tailbudget.streams.operations import Limits

OUTCOMES = (Outcome.OK, Outcome.TIMEOUT, Outcome.TIMEOUT, Outcome.ERROR, Outcome.CANCELLED)

Found = Counter[tuple[str, float, int]]


@st.composite
def logs(draw: st.DrawFn) -> Columns:
    """Return the records of a partition: attempts in order among others, some out of time."""
    count = draw(st.integers(2, 30))
    number: Counter[int] = Counter()
    tries = []
    for offset in range(count):
        operation = draw(st.integers(0, 4))
        skipped = draw(st.sampled_from((1, 1, 1, 1, 2)))
        number[operation] += skipped
        start = offset * draw(st.sampled_from((0.5, 1.0, 1.0, 4.0)))
        ms = draw(st.sampled_from((0.0, 400.0, 3_000.0)))
        outcome = draw(st.sampled_from(OUTCOMES))
        numbered = 0 if not operation or draw(st.integers(0, 9)) == 0 else number[operation]
        if outcome in {Outcome.OK, Outcome.CANCELLED} and draw(st.booleans()):
            number[operation] = 0
        tries.append(Try(operation, numbered, start, ms, outcome))
    columns = columns_of_tries(tries)
    names = [f"r{offset}" for offset in range(count)]
    return replace(columns, ids=names, id_hash=np.arange(count, dtype=np.uint64))


def run(holds: HeldAttempts, log: Columns, edges: list[int]) -> tuple[Found, int]:
    """Give pieces of the log to a worker; return its requests and the attempts in them."""
    found: Found = Counter()
    merged = 0
    for first, end in pairwise(edges):
        ready = holds.add(pick(log, np.arange(first, end)))
        merged += sum(n for key, n in holds.counts().items() if key[2] == ledger.RETRY)
        if ready is not None:
            totals = np.round(ready.total_ms, 6).tolist()
            found.update(zip(ready.ids, totals, ready.ts_ns.tolist(), strict=True))
    return found, merged


def edges(first: int, end: int, ends: list[int]) -> list[int]:
    """Return an ascending list of cuts from first to end."""
    return sorted({first, end, *(first + cut % (end - first + 1) for cut in ends)})


LIMITS = st.builds(
    Limits,
    hold_ns=st.sampled_from((2 * SECOND_NS, 120 * SECOND_NS)),
    disorder_ns=st.sampled_from((0, 3 * SECOND_NS)),
    most=st.sampled_from((1, 3, 1_000)),
)
CUTS = st.lists(st.integers(0, 60), max_size=5)


@settings(max_examples=400, deadline=None)
@given(
    logs(),
    LIMITS,
    st.lists(st.tuples(st.integers(0, 60), CUTS, CUTS, st.integers(0, 5)), max_size=4),
    CUTS,
)
def test_a_successor_holds_the_same(
    log: Columns,
    limits: Limits,
    deaths: list[tuple[int, list[int], list[int], int]],
    last: list[int],
) -> None:
    """With any deaths, cuts and kept positions the requests are those of a life without."""
    size = len(log)
    quiet = HeldAttempts(limits)
    wanted, _ = run(quiet, log, [0, size])
    holds, found, merged, committed = HeldAttempts(limits), Counter[tuple[str, float, int]](), 0, 0
    for death, cuts, again, lag in deaths:
        end = committed + death % (size - committed + 1)
        more, count = run(holds, log, edges(committed, end, cuts))
        found, merged, committed = found + more, merged + count, end
        first = holds.first_offset
        start = max((committed if first is None else first) - lag, 0)
        holds = HeldAttempts(limits)
        run(holds, log, edges(start, committed, again))  # counted already
        assert holds.first_offset == first
    more, count = run(holds, log, edges(committed, size, last))
    found, merged = found + more, merged + count
    assert found == wanted
    held = 0 if quiet.first_offset is None else held_rows(quiet)
    assert sum(found.values()) + merged + held == size


def held_rows(holds: HeldAttempts) -> int:
    """Return how many attempts are held."""
    pools = [service.pool for service in holds._services.values() if service.pool is not None]
    return len(concat(pools)) if pools else 0
