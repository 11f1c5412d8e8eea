"""Changes of alerts, their notices, and counts of objectives: there once, and exactly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from random_records import PANE_NS, SECOND_NS, T0_NS, random_columns, stored_panes

from tailbudget.models.summarise import summarise
from tailbudget.models.tally import count, tally
from tailbudget.schemas.alert_rows import ChangeRow, NoticeRow
from tailbudget.schemas.budgets import BudgetRow
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.objectives import Objective
from tailbudget.schemas.silences import Silence
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.slo_counts import AT_ONCE

CHANGE = ChangeRow(
    "chat", "slo:latency", 1, T0_NS + 5, "chat/slo:latency/1", "resolved", "firing",
    "condition_met", "14.4x", "page", T0_NS, None, 40.5, None, '{"status":"firing"}', "{}",
)  # fmt: skip
NOTICE = NoticeRow("chat", "slo:latency", 1, "on-call", T0_NS, "firing", "page", "delivered", 1)


def test_the_newest_change_of_each_alert_comes_back(clickhouse: ClickHouse) -> None:
    """To the nanosecond, however often and in whatever order they were written."""
    newer = replace(
        CHANGE, sequence=2, at_ns=T0_NS + 9, before="firing", after="resolved", began_ns=None,
        cleared_ns=T0_NS + 7, budget_left_pct=None, budget_cost_pct=3.5,
    )  # fmt: skip
    other = replace(CHANGE, alert="p99")
    clickhouse.write_changes([newer, other])
    clickhouse.write_changes([CHANGE, newer])
    clickhouse.write_changes([])
    assert clickhouse.last_changes("chat") == [other, newer]
    assert clickhouse.last_changes("search") == []
    assert clickhouse.query("SELECT count() FROM alert_changes FINAL").rows == ((3,),)


def test_the_newest_notice_of_each_channel_comes_back(clickhouse: ClickHouse) -> None:
    """A later outcome of the same notice replaces the earlier one."""
    tried = replace(NOTICE, outcome="given_up", attempts=9, error="HTTP 503")
    later = replace(NOTICE, at_ns=T0_NS + SECOND_NS)
    elsewhere = replace(NOTICE, channel="mail")
    clickhouse.write_notices([tried, elsewhere])
    clickhouse.write_notices([later])
    assert clickhouse.last_notices("chat") == [elsewhere, later]


def test_the_newest_version_of_a_silence_counts(clickhouse: ClickHouse) -> None:
    """Ended early it is over; those that are over are not read."""
    lasting = Silence("a1", "chat", "", T0_NS, T0_NS + 9 * SECOND_NS, "deploy", 1)
    short = replace(lasting, id="b2", alert="p99", ends_ns=T0_NS + SECOND_NS)
    for one in (lasting, short):
        clickhouse.write_silence(one)
    assert clickhouse.silences(T0_NS) == [short, lasting]
    assert clickhouse.silences(short.ends_ns) == [lasting]
    clickhouse.write_silence(replace(lasting, ends_ns=T0_NS, version=2))
    assert clickhouse.silences(T0_NS) == [short]


def test_budgets_are_kept_once(clickhouse: ClickHouse) -> None:
    """Written twice it is one row; what is not known is NULL."""
    row = BudgetRow("chat", "latency", T0_NS, 1000, 7, 99.0, 30.5, None, 1.25, None, "resolved")
    later = replace(row, at_ns=T0_NS + 10 * SECOND_NS, exhausted_ns=T0_NS, corrected_pct=50.0)
    clickhouse.write_budgets([])
    clickhouse.write_budgets([row, later])
    clickhouse.write_budgets([row])
    found = clickhouse.query("SELECT * FROM budgets FINAL ORDER BY at").records()
    assert [one["corrected_pct"] for one in found] == [None, 50.0]
    assert found[0] == {
        "service": "chat", "objective": "latency", "at": "2026-03-02 10:00:00.000", "total": 1000,
        "bad": 7, "target_pct": 99.0, "left_pct": 30.5, "corrected_pct": None, "burn_rate": 1.25,
        "exhausted_at": None, "status": "resolved",
    }  # fmt: skip
    assert found[1]["exhausted_at"] == "2026-03-02 10:00:00.000"


@pytest.mark.parametrize(
    "cohort", [(), (("route", "chat"),), (("region", "eu"), ("route", "'; DROP TABLE panes; --"))]
)
@pytest.mark.parametrize("threshold_ms", [None, 100.0, 77.0])
def test_counts_are_those_of_the_summaries(
    clickhouse: ClickHouse, threshold_ms: float | None, cohort: Cohort
) -> None:
    """SQL over stored panes gives the tally of their summaries, also of what is not known."""
    made = random_columns(5, 400, weighted=True)
    summary = summarise(made, pane_ns=PANE_NS, thresholds_ms=(100.0, 250.5))
    panes = sorted(set(summary.pane_ns.tolist()))
    clickhouse.write_panes(stored_panes(made))
    slo = Objective("chat", "x", Fraction(99, 100), threshold_ms, cohort=cohort)
    # Whatever else is counted by the same query, however many they are.
    others = [Objective("chat", f"o{i}", Fraction(9, 10), 100.0 + i) for i in range(AT_ONCE)]
    asked = [others[0], slo, *others[1:]]
    found = clickhouse.read_tallies(asked, panes[0], panes[-1] + 1, 60)
    read = found[1]
    for one, got in zip(asked, found, strict=True):
        wanted = tally(summary, one, 60 * SECOND_NS)
        for name in ("start_ns", "total", "bad", "unknown"):
            assert getattr(got, name).tolist() == getattr(wanted, name).tolist()
    if not cohort:
        assert count(read).total + count(read).unknown == int(summary.requests.sum())
