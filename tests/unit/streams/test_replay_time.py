"""The time that a log's lines were written at."""

from __future__ import annotations

import statistics

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.schemas.errors import DecodeError
from tailbudget.streams.log_time import detect_format, record_ns, timeline

S = 1_000_000_000
T0 = 1_772_445_600 * S  # 2026-03-02T10:00:00Z
LATER = T0 + 10**6 * S


def stamps(*seconds: float | None, fallback_ns: int = LATER) -> list[float]:
    lines = [
        b"{}" if second is None else orjson.dumps({"timestamp": round(T0 + second * S)})
        for second in seconds
    ]
    timed = list(timeline(lines, fallback_ns))
    assert [line for line, _ in timed] == lines
    return [(at - T0) / S for _, at in timed]


def test_an_orderly_log_keeps_its_times() -> None:
    """Where records are in order, each line but the first has exactly its own time."""
    assert stamps(0, 60, 180, 181, 182, 3600) == [60, 60, 180, 181, 182, 3600]


@pytest.mark.parametrize("place", range(12))
def test_a_record_stamped_ahead_stands_out(place: int) -> None:
    """One record a day ahead gets the time of its neighbours, wherever but last it stands."""
    seconds = [float(n) for n in range(12)]
    seconds[place] += 86_400
    got = stamps(*seconds, 12, 13)
    assert max(got) <= 13
    assert all(abs(at - n) <= 2 for n, at in enumerate(got))


@pytest.mark.parametrize("place", range(12))
def test_a_late_record_does_not_shift_others(place: int) -> None:
    """One record an hour old leaves its neighbours within the times around them."""
    seconds = [float(n) for n in range(12)]
    seconds[place] -= 3_600
    got = stamps(*seconds)
    assert all(abs(at - n) <= 2 for n, at in enumerate(got) if n != place)


def test_the_end_of_a_sparse_log_is_trusted() -> None:
    """The last record after an hour of silence is not taken for one from the future."""
    assert stamps(0, 60, 120, 3_720)[-1] == 3_720
    assert stamps(0, 60, 120, 3_720, 4_320)[-2:] == [3_720, 4_320]


def test_short_logs() -> None:
    """Logs of no, one and two lines have times too."""
    assert stamps() == []
    assert stamps(5) == [5]
    assert stamps(5, 65) == [65, 65]


def test_lines_without_a_time_follow_the_one_before() -> None:
    """A line that is no record has its neighbours' time; a log without any has ours."""
    assert stamps(0, 1, None, None, 2, 3) == [1, 1, 1, 1, 2, 3]
    assert stamps(None, None, fallback_ns=T0 + S) == [1, 1]


def test_no_line_is_written_after_now() -> None:
    """What the log claims about the future does not move the time beyond the present."""
    assert stamps(0, 10, 20, 30, fallback_ns=T0 + 15 * S) == [10, 10, 15, 15]


@given(st.lists(st.integers(0, 10_000), min_size=5))
def test_inner_lines_have_the_median_of_five(seconds: list[int]) -> None:
    """Away from the ends, a line's time is the median of itself and two on either side."""
    got = stamps(*seconds)
    for centre in range(2, len(seconds) - 2):
        assert got[centre] == statistics.median(seconds[centre - 2 : centre + 3])


@pytest.mark.parametrize(
    ("record", "second"),
    [
        ({"timestamp": "2026-03-02T10:00:07Z"}, 7),
        ({"timestamp": 1_772_445_607}, 7),
        ({"timestamp": 1_772_445_607_500}, 7.5),
        ({"timestamp": 1_772_445_607.25}, 7.25),
        ({"metadata": {"request_end_ns": T0 + S}, "metrics": {}}, 1),
        ({"metadata": {"timestamp_ns": T0}, "metrics": {"request_latency": {"value": 1500}}}, 1.5),
        ({"metadata": {"timestamp_ns": T0}, "metrics": {"error_request_count": {}}}, 0),
    ],
)
def test_reads_the_time_of_each_format(record: dict[str, object], second: float) -> None:
    """Text and epochs of native records; the end of the request of AIPerf's."""
    assert record_ns(orjson.dumps(record)) == T0 + round(second * S)


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"nonsense", b"[]", b"null", b"{}", b'{"timestamp":true}', b'{"timestamp":0}'),
        *(b'{"timestamp":9783161484100}', b'{"timestamp":"yesterday"}', b'{"metadata":{}}'),
    ],
)
def test_an_incredible_time_is_none(line: bytes) -> None:
    """Anything else has no time, and raises nothing."""
    assert record_ns(line) is None


def test_detects_the_format_from_the_first_object() -> None:
    """Junk before the first object does not matter, and no line is lost by looking."""
    native = [b"junk", b"[]", b'{"request_id":"a"}', b"more"]
    found, lines = detect_format(native)
    assert (found, list(lines)) == ("native", native)
    found, lines = detect_format([b'\xef\xbb\xbf{"metadata":{},"metrics":{}}'])
    assert (found, len(list(lines))) == ("aiperf", 1)
    found, lines = detect_format([])
    assert (found, list(lines)) == ("native", [])


def test_a_file_without_objects_is_refused() -> None:
    """A pretty-printed array is no log of lines, and the remedy says how to make it one."""
    with pytest.raises(DecodeError, match="none of the first 100 lines") as caught:
        detect_format([b"  1,"] * 200)
    assert "jq" in caught.value.remedy
