"""A cold start is told in place of the percentile that it explains, and hides no lasting fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from requests_of import SECOND_NS, T0_NS, columns_of, summary_of

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.records import Outcome
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.sinks.messages.words import title
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.alert_log import change_row
from tailbudget.streams.service_audit import ServiceAudit

STEP_NS = SECOND_NS // 2
WINDOW = ColdWindow(T0_NS + 60 * SECOND_NS, T0_NS + 120 * SECOND_NS, "v7", "deploy")


def steps(seconds: int, start_s: int, slow_share: float, seed: int) -> Iterator[Summary]:
    """Yield the summary of each half of a second: 100 requests; slow ones take 500 ms."""
    rng = np.random.default_rng(seed)
    for step in range(seconds * 2):
        at_ns = T0_NS + start_s * SECOND_NS + step * STEP_NS
        total = np.where(rng.random(100) < slow_share, 500.0, 100.0).tolist()
        times = [at_ns + i for i in range(100)]
        yield summary_of(columns_of(total, ids=range(at_ns, at_ns + 100), ts_ns=times), (200.0,))


def failing(seconds: int, start_s: int) -> Iterator[Summary]:
    """Yield the summary of each half of a second: every fifth request fails."""
    for step in range(seconds * 2):
        at_ns = T0_NS + start_s * SECOND_NS + step * STEP_NS
        times = [at_ns + i for i in range(100)]
        made = columns_of([100.0] * 100, ids=range(at_ns, at_ns + 100), ts_ns=times)
        outcome = np.where(np.arange(100) % 5, Outcome.OK, Outcome.ERROR).astype(np.int8)
        yield summary_of(replace(made, outcome=outcome), (200.0,))


def play(audit: ServiceAudit, summaries: Iterator[Summary]) -> list[Alert]:
    """Judge after each summary, with the window after the deploy known."""
    alerts: list[Alert] = []
    for summary in summaries:
        now_ns = int(summary.sample.ts_ns.max())
        audit.add(summary)
        alerts += audit.judge(now_ns, cold=(WINDOW,))
    return alerts


def audit(book: AlertBook | None = None) -> ServiceAudit:
    target = SloTarget(p99_ms=200.0)
    return ServiceAudit("chat", target, pane_s=10, book=book or AlertBook("chat"))


def said(alerts: list[Alert]) -> list[tuple[str, str, str]]:
    return [(one.alert, one.state, one.severity) for one in alerts]


def test_replicas_that_warm_up_are_a_ticket_and_no_page() -> None:
    """It is over when they are warm; the percentile says nothing."""
    here = audit()
    before = play(here, steps(60, 0, 0.002, seed=1))
    cold = play(here, steps(20, 60, 0.2, seed=2))
    warm = play(here, steps(60, 80, 0.002, seed=3))
    assert before == []
    assert said(cold) == [("cold_start", "firing", "ticket")]
    assert [(one.alert, one.state) for one in warm] == [("cold_start", "resolved")]
    assert title(cold[0]) == (
        "[FIRING ticket] chat: cold start: steady state is within SLO, cold since the deploy of v7"
    )
    assert (cold[0].kind, cold[0].deploy) == ("cold_start", "v7")
    assert "p99 500 ms against 200 ms" in cold[0].reason


def test_a_deploy_that_stays_slow_pages_when_the_window_is_over() -> None:
    """What does not warm up is no cold start."""
    here = audit()
    alerts = play(here, steps(60, 0, 0.002, seed=1))
    alerts += play(here, steps(80, 60, 0.2, seed=2))
    assert [one[:2] for one in said(alerts)] == [
        ("cold_start", "firing"),
        ("p99", "firing"),
        ("cold_start", "resolved"),
    ]
    paged = alerts[1]
    assert paged.severity == "page"
    assert WINDOW.end_ns <= paged.at_ns < WINDOW.end_ns + SECOND_NS


def test_what_begins_once_replicas_are_warm_pages_at_once() -> None:
    """A service that kept its targets for half a minute after a deploy is not cold."""
    here = audit()
    play(here, steps(95, 0, 0.002, seed=1))
    alerts = play(here, steps(10, 95, 0.2, seed=2))
    assert said(alerts) == [("p99", "firing", "page")]
    assert alerts[0].at_ns < WINDOW.end_ns


def test_a_breach_that_was_there_before_the_deploy_goes_on() -> None:
    """A deploy does not hide what it did not begin."""
    here = audit()
    alerts = play(here, steps(60, 0, 0.2, seed=1))
    alerts += play(here, steps(20, 60, 0.2, seed=2))
    assert said(alerts) == [("p99", "firing", "page")]


def test_a_deploy_that_fails_requests_pages_at_once() -> None:
    """Cold replicas are slow and do not fail."""
    here = audit()
    play(here, steps(60, 0, 0.002, seed=1))
    alerts = play(here, failing(20, 60))
    assert said(alerts) == [("p99", "firing", "page")]
    assert alerts[0].at_ns < WINDOW.end_ns


def test_a_restart_in_a_cold_start_repeats_nothing() -> None:
    """The next owner goes on with it, and tells its end."""
    first = audit()
    play(first, steps(60, 0, 0.002, seed=1))
    (fired,) = play(first, steps(20, 60, 0.2, seed=2))
    book = AlertBook("chat")
    book.restore([change_row(fired)])
    second = audit(book)
    second.restore([*steps(60, 0, 0.002, seed=1), *steps(20, 60, 0.2, seed=2)])
    after = play(second, steps(60, 80, 0.002, seed=3))
    assert [(one.alert, one.state) for one in after] == [("cold_start", "resolved")]
    assert after[0].alert_id == fired.alert_id
