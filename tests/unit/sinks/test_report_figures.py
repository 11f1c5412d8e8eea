"""How numbers and names are shown."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.sinks.report import figures
from tailbudget.sinks.report.clean import NAME_LENGTH, SENTENCE_LENGTH, clean, clean_name
from tailbudget.sinks.report.document import Name, say


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (-0.0, "0"),
        (0.00321, "0.00321"),
        (0.5, "0.5"),
        (6.01, "6.01"),
        (9.999, "10"),
        (94.84, "94.8"),
        (480.2, "480.2"),
        (999.96, "1,000"),
        (1_912.4, "1,912"),
        (12_345_678.9, "12,345,679"),
        (-280.2, "-280.2"),
        (math.nan, "not measured"),
        (math.inf, "not measured"),
    ],
)
def test_number_has_three_or_four_digits(value: float, said: str) -> None:
    """Small numbers keep three digits, large ones all, thousands apart."""
    assert figures.number(value) == said


def test_digits_that_mean_nothing_are_not_shown() -> None:
    """Below a microsecond, a hundredth of a per cent and a thousandth of R² all is noise."""
    assert (figures.ms(0.000001), figures.ms(0.0048)) == ("0 ms", "0.005 ms")
    assert (figures.pct(-0.00125), figures.pct(0.0581)) == ("0 %", "0.06 %")
    assert figures.ratio(0.000067) == "0"
    assert figures.interval_ms((-0.000054, 0.2)) == "0 to 0.2 ms"


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_number_is_within_half_a_per_cent(value: float) -> None:
    """What is shown can be read back, within the third digit."""
    assert float(figures.number(value).replace(",", "")) == pytest.approx(value, rel=0.005)


def test_unknown_is_said() -> None:
    """None and too few requests read as what they are."""
    assert figures.ms(None) == figures.pct(None) == figures.ratio(None) == "not measured"
    assert figures.interval_ms(None) == figures.yes_no(None) == "not measured"
    assert figures.ms(None, figures.insufficient(12)) == "insufficient (n=12)"
    assert figures.not_measured("no stage") == "not measured: no stage"
    assert figures.insufficient(0) == "not measured: n=0"


def test_differences_have_a_sign() -> None:
    """A difference says its direction; none is none."""
    assert figures.signed_ms(265.2) == "+265.2 ms"
    assert figures.signed_ms(-280.2) == "-280.2 ms"
    assert figures.signed_ms(0.0) == "0 ms"


@given(st.text(), st.integers(min_value=1, max_value=700))
def test_clean_text_is_one_short_visible_line(text: str, length: int) -> None:
    """No sign that moves the cursor, turns the writing or hides is left, and cleaning is done."""
    once = clean(text, length)
    assert len(once) <= length
    assert clean(once, length) == once
    seen = once.replace("\u200c", "").replace("\u200d", "")
    assert not {unicodedata.category(sign) for sign in seen} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_names_are_cut_and_never_empty() -> None:
    """A name of 5,000 characters ends in an ellipsis; one of spaces is said to be empty."""
    assert clean_name("x" * 5_000) == "x" * (NAME_LENGTH - 1) + "…"
    assert clean_name(" \n\t ") == "(empty)"
    assert clean_name("a\x1b[31mb\u202ec\nd") == "a\ufffd[31mb\ufffdc d"


def test_spans_keep_the_spaces_between_them() -> None:
    """Cleaning a sentence does not glue its spans together."""
    assert say("of ", Name(" a "), ", and  more ") == ("of ", Name("a"), ", and more ")
    assert len("".join(map(str, say("y" * 5_000)))) == SENTENCE_LENGTH
