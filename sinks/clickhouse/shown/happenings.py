"""What happened to a service: deploys, alerts, and what was unusual."""

from __future__ import annotations

from typing import Any, Final

from tailbudget.sinks.clickhouse.client import ClickHouse
from tailbudget.sinks.clickhouse.shown.look import Look

Rows = list[dict[str, Any]]

_ALERTS: Final = """
SELECT alert, sequence, toUnixTimestamp64Milli(at) AS at_ms, before, after, reason, detail,
    severity
FROM alert_changes FINAL
WHERE service = {service:String}
    AND at >= toDateTime({since:UInt32}) AND at < toDateTime({until:UInt32})
ORDER BY at, alert, sequence LIMIT 500
"""
_ANOMALIES: Final = """
SELECT stage, cohorts, state, test, toUnixTimestamp(onset) AS onset_s,
    toUnixTimestamp(ended_at) AS ended_s, effect_pct, low_pct, high_pct, effect_ms,
    expected_ms, measured_ms, deploy, cause
FROM regressions
WHERE service = {service:String} AND onset < toDateTime({until:UInt32})
    AND (ended_at IS NULL OR ended_at >= toDateTime({since:UInt32}))
ORDER BY onset DESC LIMIT 500
"""
_MODELS: Final = """
SELECT stage, cohort, state, rows, r2, toUnixTimestamp(at) AS at_s
FROM shape_models FINAL
WHERE service = {service:String} AND at < toDateTime({until:UInt32})
ORDER BY shape_models.at DESC LIMIT 1 BY stage, cohort
"""
_SUSPECTED: Final = """
SELECT version AS instance, toUnixTimestamp64Milli(start) AS at_ms
FROM cold_windows FINAL
WHERE service = {service:String} AND source = 'suspected'
    AND start >= toDateTime({since:UInt32}) AND start < toDateTime({until:UInt32})
ORDER BY at_ms, instance LIMIT 500
"""


def alerts(store: ClickHouse, look: Look) -> Rows:
    """Return the changes of a service's alerts in a range, oldest first."""
    return store.query(_ALERTS, look.parameters()).records()


def anomalies(store: ClickHouse, look: Look) -> Rows:
    """Return what was slower than its workload explains; the table must be there."""
    return store.query(_ANOMALIES, look.parameters()).records()


def suspected(store: ClickHouse, look: Look) -> Rows:
    """Return the cold starts that no deploy announced; the table must be there."""
    return store.query(_SUSPECTED, look.parameters()).records()


def models(store: ClickHouse, look: Look) -> Rows:
    """Return how the model of each stage and cohort stood; the table must be there."""
    return store.query(_MODELS, look.parameters()).records()
