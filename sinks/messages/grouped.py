"""Several alerts of one service in one message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.messages import Draft
from tailbudget.sinks.chat_text import code_text, query_text, time_text
from tailbudget.sinks.messages.words import guidance, item, words

_RANK = {"page": 0, "ticket": 1}
_STATE_RANK = {"firing": 0, "no_data": 1, "resolved": 2, "muted": 3, "pending": 4}


def drafted(alerts: Sequence[Alert]) -> Draft:
    """Return what is said about one or several alerts of one service, the most urgent first.

    Raises:
        ValueError: there is none.
    """
    if not alerts:
        raise ValueError("a message is about at least one alert")
    ordered = sorted(alerts, key=urgency)
    return words(ordered[0]) if len(ordered) == 1 else _several(ordered)


def urgency(alert: Alert) -> tuple[int, int, float, str, str]:
    """Return what sorts alerts, the most urgent first."""
    beyond = 0.0
    if alert.measured_ms is not None and alert.slo_ms:
        beyond = alert.measured_ms / alert.slo_ms
    state = _STATE_RANK.get(alert.state, 9)
    return state, _RANK.get(alert.severity, 9), -beyond, alert.alert, alert.cohort


def _several(alerts: Sequence[Alert]) -> Draft:
    worst = alerts[0]
    states = Counter(alert.state for alert in alerts)
    said = ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in states.items())
    since = [alert.since_ns for alert in alerts if alert.since_ns is not None]
    head = [f"{code_text(worst.service)}: {said}"]
    if since:
        head.append(f"Since {time_text(min(since))}")
    first_ns = min(since) if since else None
    return Draft(
        title=f"[{worst.state.replace('_', ' ').upper()}] {worst.service}: {len(alerts)} alerts",
        head=tuple(head),
        items=tuple(item(alert) for alert in alerts),
        tail=tuple(guidance(worst)),
        query=worst.sql or query_text(worst.service, first_ns),
    )
