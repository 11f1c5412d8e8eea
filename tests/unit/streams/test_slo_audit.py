"""Objectives of a service over event time: when they alert, what is said, and restarts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import orjson
import pytest
from random_records import stored_panes
from requests_of import columns_of, summary_of
from slo_events import SECOND_NS, T0_NS

from tailbudget.models.slo_window import Span
from tailbudget.models.tally import tally
from tailbudget.schemas.alert import Alert
from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.objectives import AlertTiming, Correction, Objective, Period
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.summary import Summary
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.alert_log import change_row, publish
from tailbudget.streams.slo_audit import SloAudit
from tailbudget.streams.slo_opening import open_book, open_slo_audit

SLO = Objective("chat", "latency", Fraction(99, 100), threshold_ms=500.0)
MINUTE_NS = 60 * SECOND_NS


def requests(first_s: int, last_s: int, ms: float, *, per_s: int = 1) -> Columns:
    """Return requests of one latency, so many a second of [first_s, last_s)."""
    times = [T0_NS + s * SECOND_NS for s in range(first_s, last_s) for _ in range(per_s)]
    ids = [(s + 10**6) * 1000 + i for s in range(first_s, last_s) for i in range(per_s)]
    return columns_of([ms] * len(times), ids=ids, ts_ns=times)


def summary(first_s: int, last_s: int, ms: float, *, per_s: int = 1) -> Summary:
    """Return their summary in panes of ten seconds."""
    return summary_of(requests(first_s, last_s, ms, per_s=per_s), thresholds_ms=(500.0,))


def audit_of(slo: Objective = SLO, corrections: tuple[Correction, ...] = ()) -> SloAudit:
    """Return the audit of a service with one objective."""
    return SloAudit([slo], corrections, pane_s=10, book=AlertBook("chat"))


def judge(audit: SloAudit, first_s: int, last_s: int, step_s: int = 10) -> list[Alert]:
    """Return what is said at each step of [first_s, last_s)."""
    times = range(first_s, last_s, step_s)
    return [one for s in times for one in audit.judge(T0_NS + s * SECOND_NS - 1)]


def incident() -> SloAudit:
    """Return an audit of a good hour, then ten bad minutes, then ten good ones."""
    audit = audit_of()
    audit.add(summary(-3600, 0, 100.0))
    audit.add(summary(0, 600, 900.0))
    audit.add(summary(600, 1200, 100.0))
    return audit


def test_an_incident_is_two_messages() -> None:
    """It fires within a pane of 8.64 min, resolves within one of 14.32, and says what it cost."""
    fired, cleared = judge(incident(), 0, 1200)
    assert (fired.alert, fired.state, fired.severity) == ("slo:latency", "firing", "page")
    assert (fired.at_ns - T0_NS) / MINUTE_NS == pytest.approx(8.64, abs=1 / 6)
    assert (cleared.at_ns - T0_NS) / MINUTE_NS == pytest.approx(14.32, abs=1 / 6)
    assert fired.alert_id == cleared.alert_id
    assert (fired.since_ns, cleared.since_ns) == (T0_NS, T0_NS)
    assert (fired.sequence, cleared.sequence) == (1, 2)
    # A request a second for 30 days allows 25,920 bad ones, and 600 were.
    assert cleared.budget_cost_pct == pytest.approx(100 * 600 / 25_920, rel=0.02)
    assert cleared.budget_left_pct == pytest.approx(100 - 100 * 600 / 25_920, rel=0.01)


def test_what_is_still_held_counts() -> None:
    """Newer records that are not proven yet are judged with the rest, and not kept."""
    audit = audit_of()
    audit.add(summary(-3600, 0, 100.0))
    held = [summary(0, 600, 900.0)]
    (fired,) = audit.judge(T0_NS + 600 * SECOND_NS - 1, held)
    assert fired.state == "firing"
    assert fired.over == 600
    assert audit.budgets(T0_NS + 600 * SECOND_NS)["latency"].measured.bad == 0


def test_one_failed_request_pages_nobody_and_is_shown() -> None:
    """Case 33: one request in the hour, failed: no message, and the budget shows it."""
    columns = requests(0, 1, 100.0)
    columns.outcome[0] = Outcome.ERROR
    audit = audit_of()
    audit.add(summary_of(columns, thresholds_ms=(500.0,)))
    assert judge(audit, 1, 600) == []
    budget = audit.budgets(T0_NS + 600 * SECOND_NS)["latency"].measured
    assert (budget.total, budget.bad, budget.good_pct) == (1, 1, 0)
    assert budget.burn_rate == pytest.approx(100)


def test_silence_freezes_a_breach() -> None:
    """Case 32: in breach at 12:00, the last row at 12:05, silence to 13:00: no data, once."""
    audit = audit_of()
    audit.add(summary(-3600, 0, 100.0))
    audit.add(summary(0, 900, 900.0))
    said = judge(audit, 0, 4500)
    assert [(one.before, one.state, one.change_reason) for one in said] == [
        ("resolved", "firing", "condition_met"),
        ("firing", "no_data", "no_data"),
    ]
    assert said[1].at_ns == pytest.approx(T0_NS + 1500 * SECOND_NS, abs=11 * SECOND_NS)
    assert said[1].alert_id == said[0].alert_id


def test_a_restarted_worker_neither_repeats_nor_loses() -> None:
    """From rows of ClickHouse it goes on within an incident, says its end, and nothing twice."""
    whole = judge(incident(), 0, 1200)
    first = audit_of()
    for part in (summary(-3600, 0, 100.0), summary(0, 600, 900.0)):
        first.add(part)
    said = judge(first, 0, 560)
    book = AlertBook("chat")
    book.restore([change_row(one) for one in said])
    second = SloAudit([SLO], (), pane_s=10, book=book)
    series = second.series["latency"]
    parts = [summary(-3600, 0, 100.0), summary(0, 600, 900.0), summary(600, 1200, 100.0)]
    for since_ns, until_ns, slice_s in series.wanted(T0_NS + 1200 * SECOND_NS):
        assert since_ns < T0_NS - 3600 * SECOND_NS
        assert until_ns >= T0_NS + 1200 * SECOND_NS
        for part in parts:
            second.restore({"latency": [tally(part, SLO, slice_s * SECOND_NS)]})
    said += judge(second, 560, 1200)
    assert said == whole


def test_slices_are_judged_when_they_are_over() -> None:
    """Minutes with too many slow requests are bad: the ninth of the hour pages."""
    slices = replace(
        SLO, slice_s=60, slice_target=Fraction(95, 100), timing=AlertTiming(min_bad=5),
        period=Period(30, "d"),
    )  # fmt: skip
    audit = audit_of(slices)
    audit.add(summary(-3600, 0, 100.0))
    audit.add(summary(0, 1200, 900.0))
    fired = judge(audit, 0, 1200)[0]
    # 14.4 % of the 60 slices of an hour is 8.64: the ninth bad one is over after nine minutes.
    assert (fired.at_ns - T0_NS) / MINUTE_NS == pytest.approx(9, abs=0.2)
    assert "9 of 60 slices bad" in fired.reason


def test_both_budgets_are_told() -> None:
    """With maintenance in the period, the message has the figure with and without it."""
    span = Span(T0_NS, T0_NS + 300 * SECOND_NS)
    upgrade = Correction(*span, "upgrade")
    audit = audit_of(SLO, (upgrade,))
    for part in (summary(-3600, 0, 100.0), summary(0, 600, 900.0)):
        audit.add(part)
    (fired,) = judge(audit, 0, 600)
    assert fired.budget_left_pct is not None
    assert fired.budget_corrected_pct is not None
    assert fired.budget_corrected_pct > fired.budget_left_pct


def test_the_message_says_what_is_known_beside() -> None:
    """Where to look and what to do is asked for once, when the alert moves, and survives JSON."""
    asked = []

    def explain() -> AlertContext:
        asked.append(1)
        return AlertContext(
            tail_driver="retrieve", cause="cache miss", evidence=("hit ratio 20 %",)
        )

    audit = audit_of()
    audit.add(summary(0, 600, 900.0))
    said = [
        alert
        for second in range(10, 600, 10)
        for alert in audit.judge(T0_NS + second * SECOND_NS - 1, [], explain)
    ]
    assert (len(said), len(asked)) == (1, 1)
    assert (said[0].tail_driver, said[0].evidence) == ("retrieve", ("hit ratio 20 %",))
    assert Alert.from_payload(orjson.loads(orjson.dumps(said[0].to_payload()))) == said[0]


def test_a_mute_is_asked_for_by_name_and_time() -> None:
    """A silence by whoever keeps them hides the incident, and its end is said."""
    book = AlertBook("chat", lambda name, _: "deploy" if name == "slo:latency" else "")
    audit = SloAudit([SLO], (), pane_s=10, book=book)
    audit.add(summary(0, 600, 900.0))
    (muted,) = judge(audit, 10, 600)
    assert (muted.state, muted.reason) == ("muted", "deploy")
    assert book.standing() == {"slo:latency": "muted"}
    assert book.state("slo:latency").fires


def test_counts_of_a_cohort_alone() -> None:
    """An objective of another route sees none of these requests, and has no data."""
    audit = audit_of(replace(SLO, cohort=(("route", "b"),)))
    audit.add(summary(0, 600, 900.0))
    assert [one.state for one in judge(audit, 0, 600)] == ["no_data"]
    assert np.array_equal(audit.series["latency"].period_tally().total, [])


class Topic:
    """Takes what is sent to the alerts topic."""

    def __init__(self) -> None:
        self.sent: list[Alert] = []

    async def alert(self, service: str, value: bytes) -> None:
        """Keep one message."""
        alert = Alert.from_payload(orjson.loads(value))
        assert alert.service == service
        self.sent.append(alert)


def test_a_worker_takes_over_from_clickhouse(clickhouse: ClickHouse) -> None:
    """Counts of panes and states of alerts come back, and the newest change is published again."""
    settings = Settings.model_validate(
        {"services": {"chat": {"objectives": [{"name": "latency", "target_pct": 99,
                                               "threshold_ms": 500}]}}}
    )  # fmt: skip
    whole = judge(incident(), 0, 1200)
    parts = (requests(-3600, 0, 100.0), requests(0, 600, 900.0), requests(600, 1200, 100.0))
    for part in parts:
        clickhouse.write_panes(stored_panes(part, thresholds_ms=(500.0,)))
    topic: Any = Topic()
    asyncio.run(publish(whole[:1], clickhouse, topic))
    asyncio.run(publish([], clickhouse, topic))
    now_ns = T0_NS + 1200 * SECOND_NS
    book, again = asyncio.run(open_book("chat", clickhouse))
    assert again == topic.sent == whole[:1]
    opened = asyncio.run(
        open_slo_audit(book, settings, clickhouse, now_ns=now_ns, newest_ns=now_ns)
    )
    assert judge(opened, 600, 1200) == whole[1:]
    assert opened.budgets(now_ns)["latency"].measured.bad == 600


def test_an_alert_that_nobody_watches_any_more_is_over() -> None:
    """An objective that was renamed while it fired does not fire for ever."""
    (fired,) = judge(incident(), 0, 560)
    book = AlertBook("chat")
    book.restore([change_row(fired)])
    assert book.retire(["slo:latency"], ["burn"], fired.at_ns + 1) == []
    assert book.retire([], ["percentile"], fired.at_ns + 1) == []
    (over,) = book.retire(["slo:other"], ["burn"], fired.at_ns + 1)
    assert (over.state, over.kind, over.alert_id) == ("resolved", "burn", fired.alert_id)
    assert over.reason == "it is no longer watched"
    assert book.retire([], ["burn"], fired.at_ns + 2) == []
