"""The canonical text of cohorts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.schemas.cohorts import ALL, OTHER, Cohort, cohort_parse, cohort_text

NAMES = st.text(st.sampled_from("ab,=\\é ()"), min_size=0, max_size=6)
COHORTS = st.lists(st.tuples(NAMES, NAMES), max_size=4).map(tuple)


@pytest.mark.parametrize(
    ("cohort", "text"),
    [
        (ALL, ""),
        (OTHER, "(other)=(other)"),
        ((("route", "chat"), ("region", "eu")), "route=chat,region=eu"),
        ((("route", "a=b,c\\"),), "route=a\\=b\\,c\\\\"),
        ((("", ""),), "="),
    ],
)
def test_text_of_a_cohort(cohort: Cohort, text: str) -> None:
    """Pairs in order, separators escaped, and back."""
    assert cohort_text(cohort) == text
    assert cohort_parse(text) == cohort


@given(cohort=COHORTS)
def test_every_cohort_survives(cohort: Cohort) -> None:
    """Whatever stands in names and values, the text leads back to the cohort."""
    assert cohort_parse(cohort_text(cohort)) == cohort


@given(one=COHORTS, other=COHORTS)
def test_distinct_cohorts_have_distinct_texts(one: Cohort, other: Cohort) -> None:
    """The text can serve as a key."""
    assert (cohort_text(one) == cohort_text(other)) == (one == other)


@pytest.mark.parametrize("text", ["route", "a=b,c", "a=b=c", "a\\=b"])
def test_what_is_no_cohort_is_refused(text: str) -> None:
    """A part without exactly one separator is named."""
    with pytest.raises(ValueError, match="not a cohort"):
        cohort_parse(text)
