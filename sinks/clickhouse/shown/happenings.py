"""What happened to a service: deploys, alerts, and what was unusual."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tailbudget.sinks.clickhouse.client import ClickHouse
from tailbudget.sinks.clickhouse.shown.look import Look

Rows = list[dict[str, Any]]

_ALERTS: Final = """
SELECT alert, sequence, toUnixTimestamp64Milli(at) AS at_ms, before, after, reason, detail, severity
FROM alert_changes FINAL
WHERE service = {service:String} AND at >= toDateTime({since:UInt32}) AND at < toDateTime({until:UInt32})
ORDER BY at, alert, sequence LIMIT 500
"""
_ANOMALIES: Final = """
SELECT stage, cohorts, phase, test, toUnixTimestamp(onset) AS onset_s,
    toUnixTimestamp(started_at) AS started_s, toUnixTimestamp(at) AS at_s,
    effect_pct, low_pct, high_pct, effect_ms, expected_ms, measured_ms, n, deploy, cause
FROM anomalies FINAL
WHERE service = {service:String} AND at >= toDateTime({since:UInt32}) AND onset < toDateTime({until:UInt32})
ORDER BY at DESC LIMIT 500
"""
_COLD: Final = """
SELECT version, toUnixTimestamp(start) AS start_s, toUnixTimestamp(end) AS end_s, source
FROM cold_windows FINAL
WHERE service = {service:String} AND end > toDateTime({since:UInt32}) AND start < toDateTime({until:UInt32})
ORDER BY start_s, version LIMIT 500
"""


def alerts(store: ClickHouse, look: Look) -> Rows:
    """Return the changes of a service's alerts in a range, oldest first."""
    return store.query(_ALERTS, look.parameters()).records()


def anomalies(store: ClickHouse, look: Look) -> Rows:
    """Return what was slower or faster than its workload explains; the table must be there."""
    return store.query(_ANOMALIES, look.parameters()).records()


def learnt_cold_windows(store: ClickHouse, look: Look) -> Rows:
    """Return the cold windows that were learnt; the table must be there."""
    return store.query(_COLD, look.parameters()).records()
