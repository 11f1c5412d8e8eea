"""Alerts for tests of messages and their delivery."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tailbudget.schemas.alert import Alert

SECOND_NS = 10**9
T0_NS = 1_772_445_600 * SECOND_NS  # 2026-03-02T10:00:00Z

BURN = Alert(
    service="chat",
    alert="slo:latency",
    state="firing",
    alert_id="chat/slo:latency/1",
    at_ns=T0_NS + 520 * SECOND_NS,
    reason="budget burns at 14.4x over 1 h and 100x over 5 min, 14.4x allowed: 519 of 3,600",
    sequence=1,
    before="resolved",
    change_reason="condition_met",
    kind="burn",
    severity="page",
    since_ns=T0_NS,
    slo_ms=500.0,
    n=100_000,
    over=900,
    target_pct=99.0,
    burn_rate=14.4,
    budget_left_pct=12.3,
    budget_exhausted_ns=T0_NS + 7200 * SECOND_NS,
    tail_driver="retrieve",
    tail_delta_ms=377.0,
    tail_share_pct=58.4,
    worst_cohort="route=search",
    worst_share_pct=81.0,
    worst_traffic_pct=12.0,
    cause="cache miss (retrieve)",
    evidence=("hit ratio 20 % in slow requests, 80 % in fast ones",),
    first_step="warm the cache before a deploy takes traffic",
    request_id="chat-7f3a-12",
    link="http://127.0.0.1:6066/services/chat",
)
"""An objective that burns its budget, with all that can be said."""

HOSTILE = ("a_b_c", "<b onload=x>", "*bold*|pipe|", "🙂🙂 naïve", "`code`", "[x](http://evil)")
"""Names that a chat system might take for its own signs."""


def burn(**changes: Any) -> Alert:
    """Return `BURN` with changes."""
    return replace(BURN, **changes)


def breach(number: int, **changes: Any) -> Alert:
    """Return the breach of one of many cohorts, with a hostile name."""
    cohort = f"route={HOSTILE[number % len(HOSTILE)]} {number:02}"
    alert = replace(
        BURN,
        alert=f"p99 {cohort}",
        alert_id=f"chat/p99/{number}",
        kind="percentile",
        cohort=cohort,
        measured_ms=900.0 + number,
        budget_left_pct=None,
        budget_exhausted_ns=None,
        target_pct=None,
    )
    return replace(alert, **changes)
