"""Alerts of all services."""

from __future__ import annotations

from typing import Any, Final

from tailbudget.sinks.clickhouse.client import ClickHouse

Rows = list[dict[str, Any]]

_NOW: Final = """
SELECT service, alert, alert_id, sequence, before, after, reason, detail, severity,
    toUnixTimestamp64Milli(at) AS at_ms, toUnixTimestamp64Milli(began) AS began_ms,
    budget_left_pct, budget_cost_pct, payload
FROM alert_changes FINAL
ORDER BY alert_changes.sequence DESC LIMIT 1 BY service, alert
"""
_CHANGES: Final = """
SELECT service, alert, alert_id, sequence, before, after, reason, detail, severity,
    toUnixTimestamp64Milli(at) AS at_ms, budget_left_pct, budget_cost_pct
FROM alert_changes FINAL
ORDER BY alert_changes.at DESC, service, alert, sequence DESC LIMIT 200
"""
_NOTICES: Final = """
SELECT service, alert, sequence, channel, toUnixTimestamp64Milli(at) AS at_ms, state, severity,
    outcome, attempts, error
FROM alert_notices FINAL
ORDER BY alert_notices.at DESC LIMIT 200
"""


def standing(store: ClickHouse) -> Rows:
    """Return how each alert stands, by its newest change."""
    return store.query(_NOW).records()


def changes(store: ClickHouse) -> Rows:
    """Return the newest changes of all alerts, newest first."""
    return store.query(_CHANGES).records()


def notices(store: ClickHouse) -> Rows:
    """Return what became of the newest notices, newest first."""
    return store.query(_NOTICES).records()
