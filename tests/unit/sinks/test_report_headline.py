"""The verdict in one sentence."""

from __future__ import annotations

from dataclasses import replace

import audits
import pytest

from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Audit, Percentile, Provenance, Verdict
from tailbudget.sinks.report.document import plain
from tailbudget.sinks.report.headline import headline

N = 5_000


def row(name: str, measured: float | None, slo: float | None, status: Verdict) -> Percentile:
    """Return a percentile of all requests; 80 are beyond a target."""
    headroom = None if measured is None or slo is None else slo - measured
    over = None if slo is None else 80
    return Percentile(name, measured, slo, headroom, status, "all", "", N, over)


def judged(verdict: Verdict, *rows: Percentile, n: int = N) -> Audit:
    """Return an audit of nothing but percentiles."""
    start, end = "2026-03-02T10:00:00.000Z", "2026-03-02T11:00:00.000Z"
    provenance = Provenance("chat", start, end, n, n, 0, SloTarget())
    return Audit(verdict, provenance, rows, (), None, (), {}, ())


OK, BREACH = Verdict.OK, Verdict.BREACH

SENTENCES = [
    (
        judged(OK, row("p50", 40, 100, OK), row("p99", 150, 200, OK)),
        "OK: chat P99 is 150 ms, 50 ms under its 200 ms SLO.",
    ),
    (
        judged(
            Verdict.AT_RISK, row("p95", 99, 100, Verdict.AT_RISK), row("p99", 120, 200, Verdict.OK)
        ),
        "AT RISK: chat P95 is 99 ms, 1 ms under its 100 ms SLO.",
    ),
    (
        judged(BREACH, row("p50", 90, 60, BREACH), row("p99", 210, 200, BREACH)),
        "BREACH: chat P50 is 90 ms, 30 ms over its 60 ms SLO (P99 too).",
    ),
    (
        judged(BREACH, row("p99", None, 200, BREACH)),
        "BREACH: chat P99 breaks its 200 ms SLO: 80 of 5,000 requests beyond it.",
    ),
    (
        judged(Verdict.INSUFFICIENT, row("p99", 90, 200, Verdict.INSUFFICIENT), n=12),
        "INSUFFICIENT: chat had 12 requests, too few to judge P99.",
    ),
    (
        judged(Verdict.INSUFFICIENT, n=1),
        "INSUFFICIENT: chat has no judged percentile (1 request).",
    ),
    (
        judged(Verdict.NO_DATA, row("p99", None, 200, Verdict.NO_DATA), n=0),
        "NO DATA: chat has no judged percentile (0 requests).",
    ),
    (
        replace(judged(OK, row("p99", 150, 200, OK)), refused="one caller."),
        "REFUSED: one caller.",
    ),
]


@pytest.mark.parametrize(("audit", "said"), SENTENCES)
def test_sentence_says_what_counts(audit: Audit, said: str) -> None:
    """Each verdict names the percentile that decides it, with its distance from the target."""
    assert plain(headline(audit)) == said


def test_cohort_of_its_fair_share_is_not_worst() -> None:
    """A cohort that is as slow as its traffic lets expect is not blamed."""
    whole = audits.breach()
    fair = replace(whole, cohorts=tuple(one for one in whole.cohorts if one.value == "eu"))
    assert "worst cohort" in plain(headline(whole))
    assert "worst cohort" not in plain(headline(fair))
