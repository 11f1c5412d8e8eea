"""Any order and any cut of the attempts gives the same requests, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from attempts import Try, decoded
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.schemas import ledger
from tailbudget.schemas.records import Decoded, Outcome
from tailbudget.streams.operations import Limits, assembled

OUTCOMES = (Outcome.OK, Outcome.TIMEOUT, Outcome.TIMEOUT, Outcome.ERROR, Outcome.CANCELLED)


@st.composite
def operations(draw: st.DrawFn) -> list[Try]:
    """Return the attempts of some operations, their numbers from 1, and of requests of none."""
    tries = [Try(0, 0, float(i), 5.0 + i, Outcome.OK) for i in range(draw(st.integers(0, 4)))]
    for operation in range(1, draw(st.integers(1, 5)) + 1):
        start = draw(st.floats(0, 50))
        for number in range(1, draw(st.integers(1, 4)) + 1):
            ms = draw(st.sampled_from((0.0, 10.0, 1_500.0)))
            outcome = draw(st.sampled_from(OUTCOMES))
            tries.append(Try(operation, number, start, ms, outcome, model_ms=ms / 2))
            start += ms / 1e3 + draw(st.sampled_from((0.0, 1.0, 130.0)))
    return tries


def requests(batches: list[Decoded]) -> Counter[tuple[str, float, int, int]]:
    return Counter(
        (columns.ids[i], round(float(columns.total_ms[i]), 6), ts_ns, outcome)
        for batch in batches
        for columns in batch.services
        for i, (ts_ns, outcome) in enumerate(
            zip(columns.ts_ns.tolist(), columns.outcome.tolist(), strict=True)
        )
    )


def counted(batches: list[Decoded], *reasons: str) -> int:
    return sum(n for batch in batches for key, n in batch.ledger.items() if key[2] in reasons)


def cut(tries: list[Try], ends: list[int]) -> list[Decoded]:
    edges = [0, *sorted(end % (len(tries) + 1) for end in ends), len(tries)]
    return [decoded(tries[a:b]) for a, b in pairwise(edges)]


@settings(max_examples=150, deadline=None)
@given(operations(), st.randoms(use_true_random=False), st.lists(st.integers(0, 50), max_size=6))
def test_order_and_cut_do_not_matter(tries: list[Try], random: object, ends: list[int]) -> None:
    """All at once in order, or shuffled and in pieces: the same requests and counts."""
    whole = list(assembled([decoded(tries)]))
    shuffled = list(tries)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    pieces = list(assembled(cut(shuffled, ends)))
    assert requests(pieces) == requests(whole)
    for reason in (ledger.ACCEPTED, ledger.FAILED, ledger.RETRY):
        assert counted(pieces, reason) == counted(whole, reason), reason


@settings(max_examples=150, deadline=None)
@given(
    operations(),
    st.lists(st.integers(0, 50), max_size=6),
    st.integers(0, 4),
    st.sampled_from([None, 0, 5 * 10**9]),
)
def test_nothing_is_lost(
    tries: list[Try], ends: list[int], most: int, disorder_ns: int | None
) -> None:
    """Accepted requests and merged attempts are the rows that came, whatever the limits."""
    limits = Limits(disorder_ns=disorder_ns, most=most)
    found = list(assembled(cut(tries, ends), limits))
    assert counted(found, ledger.ACCEPTED) == sum(requests(found).values())
    assert counted(found, ledger.ACCEPTED, ledger.RETRY) == len(tries)
