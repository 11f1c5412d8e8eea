"""Timestamps to nanoseconds."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.streams.sources import times, timetext

T0_NS = 1_772_445_600 * 10**9  # 2026-03-02T10:00:00Z

READ = {
    "2026-03-02T10:00:00Z": T0_NS,
    "2026-03-02T10:00:00": T0_NS,
    "2026-03-02 10:00:00z": T0_NS,
    "2026-03-02T10:00:00.5Z": T0_NS + 500_000_000,
    "2026-03-02T10:00:00.12345678Z": T0_NS + 123_456_780,
    "2026-03-02T10:00:00.123456789Z": T0_NS + 123_456_789,
    "2026-03-02T10:00:00.123456789999Z": T0_NS + 123_456_789,
    "2026-03-02T11:30:00.001+01:30": T0_NS + 1_000_000,
    "2026-03-02T05:00:00-05:00": T0_NS,
    "2026-03-02T11:30:00+0130": T0_NS,
    "2026-03-02T05:00:00.000000001-0500": T0_NS + 1,
    "2024-02-29T00:00:00Z": 1_709_164_800 * 10**9,
    "1772445600": T0_NS,
    "1772445600.25": T0_NS + 250_000_000,
    "1772445600.1234567891": T0_NS + 123_456_789,
    "1772445600123": T0_NS + 123_000_000,
    "1772445600123.5": T0_NS + 123_500_000,
    "1772445600123456": T0_NS + 123_456_000,
    "1772445600123456789": T0_NS + 123_456_789,
    "1.7724456e9": T0_NS,
    "+1772445600": T0_NS,
    "-1": -(10**9),
    "0": 0,
}
UNREADABLE = [
    "yesterday",
    "2026-03-02",
    "2026-13-02T10:00:00Z",
    "2026-02-29T10:00:00Z",
    "2026-03-02T24:00:00Z",
    "2026-03-02T10:60:00Z",
    "2026-03-02T10:00:60Z",
    "2026-03-02T10:00:00.Z",
    "2026-03-02T10:00:00+24:00",
    "2026-03-02T10:00:00+2400",
    "2026-03-02T10:00:00+01",
    "2026-03-02T10:00",
    "2026-03-02T10:00:00ZZ",
    "1,772,445,600",
    "1772445600s",
    "nan",
    "true",
    "١٧٧٢٤٤٥٦٠٠",
    " 1772445600",
]


@pytest.mark.parametrize(("text", "expected"), READ.items())
def test_reads_a_timestamp(text: str, expected: int) -> None:
    """Every way of writing a time is exact to the nanosecond, alone and row by row."""
    assert times.epoch_ns(pl.Series([text])).tolist() == [expected]
    assert timetext.epoch_ns(text) == expected


@pytest.mark.parametrize("text", UNREADABLE)
def test_refuses_what_is_no_timestamp(text: str) -> None:
    """A text that is no time is never guessed at."""
    assert times.epoch_ns(pl.Series([text])).tolist() == [timetext.UNREADABLE]
    assert timetext.epoch_ns(text) == timetext.UNREADABLE


def test_mixed_texts_are_read_each_by_itself() -> None:
    """What a row is does not depend on its neighbours."""
    texts = [*READ, *UNREADABLE, ""]
    expected = [*READ.values(), *[timetext.UNREADABLE] * (len(UNREADABLE) + 1)]
    assert times.epoch_ns(pl.Series(texts)).tolist() == expected
    assert times.epoch_ns(pl.Series(texts[::-1])).tolist() == expected[::-1]


def test_absurd_epochs_are_cut_and_do_not_wrap() -> None:
    """A number of any size lands outside of the credible range on its own side."""
    texts = ["9999999999", "99999999999", "9" * 17, "1", "9" * 19, "9" * 60, "-" + "9" * 60, "9e99"]
    found = times.epoch_ns(pl.Series(texts)).tolist()
    assert all(ns > timetext.LAST_NS or ns < timetext.FIRST_NS for ns in found)
    assert found == [timetext.epoch_ns(text) for text in texts]


def test_no_rows() -> None:
    """An empty batch has no times."""
    assert times.epoch_ns(pl.Series([], dtype=pl.String)).tolist() == []


digits = st.text("0123456789", min_size=0, max_size=12)
iso = st.builds(
    "{:04d}-{:02d}-{:02d}{}{:02d}:{:02d}:{:02d}{}{}".format,
    st.integers(1, 9999),
    st.integers(0, 13),
    st.integers(0, 32),
    st.sampled_from("Tt x"),
    st.integers(0, 25),
    st.integers(0, 61),
    st.integers(0, 61),
    digits.map(lambda text: "." + text if text else ""),
    st.sampled_from(
        ["", "Z", "z", "+00:00", "-03:30", "+0130", "-0500", "+01", "+23:59", "+2:00", "Q"]
    ),
)
epochs = st.builds("{}{}".format, st.integers(-(10**20), 10**20), st.sampled_from(["", ".", ".5"]))
anything = st.one_of(iso, epochs, digits, st.text(max_size=30), st.sampled_from([*READ]))


@given(st.lists(anything, max_size=30))
def test_batches_agree_with_the_definition(texts: list[str]) -> None:
    """The vectorised reading equals the definition, text by text."""
    series = pl.Series(texts, dtype=pl.String)
    assert times.epoch_ns(series).tolist() == [timetext.epoch_ns(text) for text in texts]


@given(st.integers(946_684_800 * 10**9, 4_102_444_800 * 10**9), st.integers(0, 9))
def test_rfc_3339_round_trip(ns: int, places: int) -> None:
    """A time that is written with n digits is read back to that digit."""
    whole = dt.datetime.fromtimestamp(ns // 10**9, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f"{ns % 10**9:09d}"[:places]
    text = f"{whole}.{fraction}Z" if places else f"{whole}Z"
    step = 10 ** (9 - places)
    assert times.epoch_ns(pl.Series([text])).tolist() == [ns // step * step]
