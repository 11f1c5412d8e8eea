"""docs/slos.md and docs/alerts.md say what the code does."""

from __future__ import annotations

from fractions import Fraction

import pytest
from pages import DOCS, rows, text

from tailbudget.models import alert_state, budget, burn
from tailbudget.schemas.alerts import AlertStatus, ChangeReason
from tailbudget.schemas.objectives import Period
from tailbudget.streams import alert_log, silences, slo_audit
from tailbudget.streams.delivery import backoff
from tailbudget.streams.openslo.documents import KINDS


def seconds(words: str) -> float:
    """Return the seconds of a length such as 5 min."""
    number, unit = words.split()
    return float(number) * {"min": 60, "h": 3600, "d": 86_400}[unit]


def test_the_windows_are_those_of_thirty_days() -> None:
    """Rates, windows, shares and severities of the table follow from the code."""
    table = rows(DOCS / "slos.md", "| Burn rate | Long | Short | Budget spent | Severity |")
    period = Period(30, "d")
    rules = burn.standard_rules(period, Fraction(1, 100))
    assert len(table) == len(rules)
    for (rate, long, short, spent, severity), rule in zip(table, rules, strict=True):
        assert float(rate) == rule.factor
        assert (seconds(long), seconds(short)) == (rule.long_s, rule.short_s)
        share = rule.factor * rule.long_s / (30 * 86_400)
        assert spent == f"{100 * share:.0f} %"
        assert severity == rule.severity.value


def test_every_state_and_reason_is_listed() -> None:
    """The tables have all of them, and no others."""
    states = [row[0].strip("`") for row in rows(DOCS / "alerts.md", "| State | Meaning |")]
    reasons = [row[0].strip("`") for row in rows(DOCS / "alerts.md", "| Reason | Meaning |")]
    assert states == [state.value for state in AlertStatus]
    assert sorted(reasons) == sorted(reason.value for reason in ChangeReason)
    assert alert_state.AlertState().shown in AlertStatus


def test_every_kind_of_document_is_listed() -> None:
    """The table of OpenSLO documents names the seven kinds."""
    table = rows(DOCS / "slos.md", "| Document | What is honoured |")
    assert sorted(row[0].strip("`") for row in table) == sorted(KINDS)


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("slos.md", f"Between {burn.CLEAR_SHARE:.0%} and".replace("%", " %")),
        ("slos.md", f"for that, {burn.FEW} bad ones do"),
        ("slos.md", f"where that may have {burn.POWER} bad events"),
        ("slos.md", f"a {budget.RECENT_SHARE}th of any period"),
        ("slos.md", f"for each objective in {slo_audit.KEPT_NS / 1e9:g} s at most"),
        ("alerts.md", f"does not answer within {alert_log.PATIENCE_S:g} s"),
        ("alerts.md", f"reads silences every {silences.REFRESH_S:g} s"),
        ("alerts.md", f"or {backoff.FIRST_WAIT_S:g} s, then"),
        ("alerts.md", f"up to {backoff.LONGEST_WAIT_S:g} s"),
        ("alerts.md", f"for {backoff.GIVE_UP_S / 60:g} minutes"),
    ],
)
def test_numbers_are_those_of_the_code(page: str, said: str) -> None:
    """A number on a page is the constant that decides it."""
    assert said in text(DOCS / page)
