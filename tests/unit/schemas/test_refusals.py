"""Reasons to refuse an input."""

from __future__ import annotations

from pages import DOCS, rows

from tailbudget.schemas import refusals
from tailbudget.schemas.errors import Refused, TailbudgetError


def test_every_reason_has_a_meaning_and_stands_on_the_page() -> None:
    """The page says of each reason what the code says."""
    constants = {v for k, v in vars(refusals).items() if k.isupper() and isinstance(v, str)}
    assert constants == set(refusals.MEANING)
    table = rows(DOCS / "audit-input.md", "| Reason | Meaning |")
    assert table == [[f"`{reason}`", meaning] for reason, meaning in refusals.MEANING.items()]


def test_a_refusal_says_what_to_do_instead() -> None:
    """It is an error with a reason, an exit status of its own, and a remedy."""
    error = Refused(refusals.NO_ROWS, "x has no rows", "check the path")
    assert isinstance(error, TailbudgetError)
    assert (error.reason, error.exit_status) == ("no_rows", 3)
    assert str(error) == "x has no rows\n  remedy: check the path"
