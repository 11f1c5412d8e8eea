"""The ledger's reasons."""

from __future__ import annotations

from tailbudget.schemas import ledger


def _constants() -> set[str]:
    return {
        value for name, value in vars(ledger).items() if name.isupper() and isinstance(value, str)
    }


def test_every_reason_has_a_meaning() -> None:
    """Reports can name every reason, and name no others."""
    assert set(ledger.MEANING) == _constants()
    assert all(ledger.MEANING.values())


def test_reasons_are_permanent() -> None:
    """The strings that stand in stored rows stay as they are."""
    assert set(ledger.MEANING) >= {
        "accepted",
        "failed",
        "rejected.not_json",
        "rejected.not_object",
        "rejected.no_id",
        "rejected.no_timestamp",
        "rejected.bad_timestamp",
        "rejected.no_total",
        "rejected.not_a_number",
        "rejected.oversize",
        "rejected.not_utf8",
        "quarantined.future",
        "quarantined.out_of_range_time",
        "quarantined.not_finite",
        "quarantined.negative_total",
        "quarantined.total_out_of_range",
        "quarantined.total_in_seconds",
        "missing.negative_stage",
        "missing.not_finite_stage",
        "missing.covariate",
        "duplicate",
        "late",
        "tombstone",
        "unknown_column",
        "clamped",
        "overlap",
        "hole",
    }


def test_kinds_of_reasons_do_not_overlap() -> None:
    """A reason rejects, quarantines, or does neither."""
    assert ledger.is_rejected(ledger.NOT_JSON)
    assert ledger.is_quarantined(ledger.FUTURE)
    for reason in ledger.MEANING:
        assert not (ledger.is_rejected(reason) and ledger.is_quarantined(reason))
    assert not ledger.is_rejected(ledger.ACCEPTED)
    assert not ledger.is_quarantined(ledger.NEGATIVE_STAGE)
