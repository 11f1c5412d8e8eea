"""Any cut of messages of spans gives the same requests, and so does any successor of a worker."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from otlp import T0_NS, S, as_json

from tailbudget.schemas.records import Decoded
from tailbudget.streams.sources import Rules, SourceMessage
from tailbudget.streams.sources.otlp_json import OtlpJsonDecoder
from tailbudget.streams.sources.trace_assembly import Bounds, TraceAssembly

ARRIVAL_NS = T0_NS + 3_600 * 10**9
Found = Counter[tuple[object, ...]]


@st.composite
def spans(draw: st.DrawFn) -> S:
    """Return a span of one of a few traces, with parents that may lack, or form a circle."""
    start = draw(st.integers(0, 60))
    length = draw(st.sampled_from((0, 1, 5, 30, -1, None)))
    return S(
        trace=draw(st.integers(0, 4)),
        id=draw(st.integers(0, 6)),
        parent=draw(st.sampled_from((0, 0, 1, 2, 3, 9))),
        name=draw(st.sampled_from(("a", "b", "total"))),
        start=start,
        end=None if length is None else start + length,
        kind=draw(st.integers(0, 5)),
        service=draw(st.sampled_from(("chat", "rank"))),
    )


MESSAGES = st.lists(
    st.one_of(st.lists(spans(), max_size=4).map(as_json), st.binary(max_size=9)), max_size=25
)
BOUNDS = st.builds(
    Bounds,
    wait_ns=st.sampled_from((0, 5_000_000, 20_000_000, None)),
    most=st.sampled_from((1, 4, 1_000)),
    of_trace=st.just(1_000),
)
CUTS = st.lists(st.integers(0, 60), max_size=5)


def fresh(bounds: Bounds) -> OtlpJsonDecoder:
    """Return a decoder that holds traces for so long."""
    one = OtlpJsonDecoder(Rules())
    one._assembly = TraceAssembly(bounds)
    return one


def rows(decoded: Decoded) -> Found:
    """Return the requests and the counts."""
    found: Found = Counter()
    for columns in decoded.services:
        for row in range(len(columns)):
            stages = zip(columns.stages, columns.stage_ms[:, row].tolist(), strict=True)
            kept = tuple((name, ms) for name, ms in stages if not math.isnan(ms))
            own = (columns.service, columns.ids[row], float(columns.total_ms[row]), kept)
            found[*own, int(columns.offset[row])] += 1
    for key, number in decoded.ledger.items():
        found[key] += number
    return found


def run(one: OtlpJsonDecoder, log: Sequence[bytes], edges: Sequence[int]) -> Found:
    """Give pieces of the log to a decoder; return what it made of them."""
    found: Found = Counter()
    for first, end in pairwise(edges):
        batch = [SourceMessage(log[i], i, ARRIVAL_NS) for i in range(first, end)]
        found += rows(one.decode(batch))
    return found


def edges(first: int, end: int, cuts: Sequence[int]) -> list[int]:
    """Return an ascending list of cuts from first to end."""
    return sorted({first, end, *(first + cut % (end - first + 1) for cut in cuts)})


@settings(max_examples=200, deadline=None)
@given(MESSAGES, BOUNDS, CUTS)
def test_any_cut_gives_the_same(log: list[bytes], bounds: Bounds, cuts: list[int]) -> None:
    """Requests and counts do not depend on the batches."""
    whole, parts = fresh(bounds), fresh(bounds)
    once = run(whole, log, [0, len(log)]) + rows(whole.finish())
    again = run(parts, log, edges(0, len(log), cuts)) + rows(parts.finish())
    assert again == once


@settings(max_examples=300, deadline=None)
@given(
    MESSAGES,
    BOUNDS,
    st.lists(st.tuples(st.integers(0, 60), CUTS, CUTS, st.integers(0, 5)), max_size=4),
    CUTS,
)
def test_a_successor_holds_the_same(
    log: list[bytes],
    bounds: Bounds,
    deaths: list[tuple[int, list[int], list[int], int]],
    last: list[int],
) -> None:
    """With any deaths, cuts and kept positions the requests are those of a life without."""
    wanted = run(fresh(bounds), log, [0, len(log)])
    one, found, committed = fresh(bounds), Counter[tuple[object, ...]](), 0
    for death, cuts, again, lag in deaths:
        end = committed + death % (len(log) - committed + 1)
        found += run(one, log, edges(committed, end, cuts))
        committed = end
        first = one.first_offset
        start = max((committed if first is None else first) - lag, 0)
        one = fresh(bounds)
        run(one, log, edges(start, committed, again))  # counted already
        assert one.first_offset == first
    found += run(one, log, edges(committed, len(log), last))
    assert found == wanted
