"""Records of packed messages are taken apart the fast way only where it is the same."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tailbudget.streams.sources import SourceBatch
from tailbudget.streams.sources.lines import Lines, _split_each, _split_packed, split

PIECES = st.sampled_from(
    [b'{"a":1}', b'{"b":"}\\n{"}', b"{}", b"{", b"}", b"\n", b" ", b"\t", b"\r", b"[1]", b'{"c":']
)
MESSAGE = st.lists(PIECES, max_size=8).map(b"".join)


def batch(values: list[bytes]) -> SourceBatch:
    count = len(values)
    return SourceBatch(list(values), np.arange(count) + 5, np.arange(count) * 10)


def same(one: Lines, other: Lines) -> bool:
    texts = [(list(lines.lines), list(lines.raw), lines.blob) for lines in (one, other)]
    numbers = [(lines.offset.tolist(), lines.arrival_ns.tolist()) for lines in (one, other)]
    rest = [(lines.exact, lines.tombstones, lines.rejected) for lines in (one, other)]
    return texts[0] == texts[1] and numbers[0] == numbers[1] and rest[0] == rest[1]


@given(st.lists(MESSAGE, min_size=1, max_size=5))
@example([b'{"a":1}\n{"a":2}  ', b'{"a":3}'])
@example([b'{"a":\n{"b":1}}', b"{}{}"])
@example([b"{}\n{}", b""])
def test_the_fast_way_takes_apart_like_the_slow_one(values: list[bytes]) -> None:
    """Whatever a message holds, lines, offsets and arrivals are the same, or it is left alone."""
    one = batch(values)
    fast = _split_packed(one.values, one.offset, one.arrival_ns, 1000)
    slow = _split_each(one.values, one.offset, one.arrival_ns, 1000)
    assert fast is None or same(fast, slow)


def test_packed_records_go_the_fast_way() -> None:
    """Records padded with blanks, as fixed-width producers write them, are no exception."""
    values = [b'{"a":1}   \n{"a":2}', b'{"a":3}\n{"a":4} \t']
    lines = split(batch(values), 1000)
    assert _split_packed(list(values), np.arange(2), np.arange(2), 1000) is not None
    assert list(lines.lines) == [b'{"a":1}   ', b'{"a":2}', b'{"a":3}', b'{"a":4} \t']
    assert lines.offset.tolist() == [5, 5, 6, 6]
