"""One service under audit: one notice when it breaks its promise, one when it keeps it again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from requests_of import SECOND_NS, T0_NS, columns_of, summary_of

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.alert_log import change_row
from tailbudget.streams.service_audit import SILENT_NS, ServiceAudit

TARGET = SloTarget(p99_ms=200.0)
STEP_NS = SECOND_NS // 2
A_STEP = 100  # 200 requests a second


def steps(seconds: float, start_s: float, slow_share: float, seed: int) -> Iterator[Summary]:
    """Yield the summary of each half of a second; slow requests take 500 ms, others 100."""
    rng = np.random.default_rng(seed)
    for step in range(int(seconds * 2)):
        at_ns = T0_NS + int(start_s * 1e9) + step * STEP_NS
        total = np.where(rng.random(A_STEP) < slow_share, 500.0, 100.0)
        ids = range(at_ns, at_ns + A_STEP)
        times = [at_ns + i for i in range(A_STEP)]
        yield summary_of(columns_of(total.tolist(), ids=ids, ts_ns=times), (200.0,))


def play(audit: ServiceAudit, summaries: Iterator[Summary]) -> list[Alert]:
    """Judge after each summary, the newest being still unproven."""
    alerts: list[Alert] = []
    for summary in summaries:
        now_ns = int(summary.pane_ns[-1])
        alerts += audit.judge(max(now_ns, T0_NS), [summary])
        audit.add(summary)
    return alerts


def new_audit(book: AlertBook | None = None) -> ServiceAudit:
    return ServiceAudit("chat", TARGET, pane_s=10, book=book or AlertBook("chat"))


def test_a_fault_is_told_once_and_its_end_once() -> None:
    """Two minutes with a fault of 20 s in the middle: one firing, one resolved, same alert."""
    audit = new_audit()
    before = play(audit, steps(60, 0, 0.002, seed=1))
    during = play(audit, steps(20, 60, 0.2, seed=2))
    after = play(audit, steps(60, 80, 0.002, seed=3))
    assert before == []
    assert [(a.alert, a.state, a.severity) for a in during] == [("p99", "firing", "page")]
    assert [(a.alert, a.state) for a in after] == [("p99", "resolved")]
    fired, resolved = during[0], after[0]
    assert fired.alert_id == resolved.alert_id
    assert (fired.sequence, resolved.sequence) == (1, 2)
    assert resolved.since_ns == fired.since_ns == fired.at_ns
    assert (fired.measured_ms or 0) > 200 > (resolved.measured_ms or 0)
    assert fired.tail_driver in {"model", "unattributed"}
    assert (fired.tail_delta_ms or 0) > 0
    assert "1 % allowed" in fired.reason
    assert "1 % allowed" in resolved.reason


def test_a_rate_at_the_edge_does_not_flap() -> None:
    """Two minutes with exactly the allowed share beyond the target make at most one notice."""
    assert len(play(new_audit(), steps(120, 0, 0.01, seed=7))) <= 1


def test_a_restart_repeats_nothing() -> None:
    """An audit that is told how the alert stood does not fire it again, and does resolve it."""
    first = new_audit()
    play(first, steps(60, 0, 0.002, seed=1))
    (fired,) = play(first, steps(20, 60, 0.2, seed=2))
    book = AlertBook("chat")
    book.restore([change_row(fired)])
    second = new_audit(book)
    second.restore([*steps(60, 0, 0.002, seed=1), *steps(20, 60, 0.2, seed=2)])
    assert play(second, steps(5, 80, 0.2, seed=4)) == []
    (resolved,) = play(second, steps(60, 85, 0.002, seed=5))
    assert (resolved.state, resolved.alert_id) == ("resolved", fired.alert_id)
    assert resolved.sequence == 2


def test_silence_freezes_a_breach_and_says_so_once() -> None:
    """Case 32: an hour without requests is neither a recovery nor a breach; then it goes on."""
    audit = new_audit()
    play(audit, steps(60, 0, 0.002, seed=1))
    (fired,) = play(audit, steps(20, 60, 0.2, seed=2))
    now_ns = T0_NS + 80 * SECOND_NS
    said = [
        alert
        for second in range(0, 3600, 10)
        for alert in audit.judge(now_ns, clock_ns=now_ns + second * SECOND_NS)
    ]
    assert [(a.before, a.state, a.change_reason) for a in said] == [
        ("firing", "no_data", "no_data")
    ]
    assert said[0].alert_id == fired.alert_id
    assert said[0].at_ns - now_ns == SILENT_NS
    back = play(audit, steps(60, 3700, 0.002, seed=3))
    assert [(a.before, a.state) for a in back] == [("no_data", "firing"), ("firing", "resolved")]
    assert {a.alert_id for a in back} == {fired.alert_id}


def test_a_muted_breach_is_said_when_the_mute_ends() -> None:
    """While it is muted the change has that reason; afterwards it fires if it still holds."""
    ends_ns = T0_NS + 75 * SECOND_NS
    book = AlertBook("chat", lambda _, now_ns: "load test" if now_ns < ends_ns else "")
    said = play(new_audit(book), steps(60, 0, 0.002, seed=1))
    said += play(new_audit(book), steps(30, 60, 0.2, seed=2))
    assert [(a.state, a.change_reason) for a in said] == [
        ("muted", "muted"),
        ("firing", "no_longer_muted"),
    ]
    assert said[0].reason == "load test"


def test_each_pane_that_event_time_leaves_is_audited_without_what_came_later() -> None:
    """Audits end at panes, count only what began before, and come once."""
    audit = new_audit()
    rows = []
    for summary in steps(40, 0, 0.002, seed=1):
        rows += audit.rolling(int(summary.pane_ns[-1]), [summary])
        audit.add(summary)
    minutes = [(row.end_ns - T0_NS, row.requests) for row in rows if row.window_s == 60]
    second = SECOND_NS
    assert minutes == [(10 * second, 2000), (20 * second, 4000), (30 * second, 6000)]
    assert {row.window_s for row in rows} == {60, 300, 3600}


def test_without_a_target_nothing_is_judged() -> None:
    """A service that promises nothing has audits and no alerts."""
    audit = ServiceAudit("chat", None, pane_s=10, book=AlertBook("chat"))
    assert play(audit, steps(20, 0, 0.5, seed=1)) == []
