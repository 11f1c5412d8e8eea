"""All services at a glance."""

from __future__ import annotations

from typing import Any, Final

from tailbudget.sinks.clickhouse.client import ClickHouse

_NEWEST: Final = """
SELECT service, toUnixTimestamp(max(pane)) AS newest_s, argMax(pane_s, pane) AS pane_s
FROM panes
WHERE stage = '(pane)' AND pane > (SELECT max(pane) FROM panes) - toIntervalDay(30)
GROUP BY service ORDER BY service
"""
_SEEN: Final = """
SELECT toUnixTimestamp(max(pane)) AS newest_s, toUnixTimestamp(min(pane)) AS oldest_s,
    argMax(pane_s, pane) AS pane_s
FROM panes WHERE service = {service:String} AND stage = '(pane)'
HAVING count() > 0
"""
_LATEST: Final = """
SELECT service, verdict, requests, failed, p50_ms, p95_ms, p99_ms, max_ms,
    slo_p50_ms, slo_p95_ms, slo_p99_ms, tail_driver, toUnixTimestamp64Milli(end) AS end_ms
FROM audits FINAL
WHERE window_s = 60 AND audits.end > fromUnixTimestamp({since:Int64})
ORDER BY audits.end DESC LIMIT 1 BY service
"""
_LATEST_OF: Final = _LATEST.replace(
    "WHERE window_s = 60", "WHERE service = {service:String} AND window_s = 60"
)
_SINCE: Final = """
SELECT toUnixTimestamp64Milli(min(end))
FROM audits FINAL
WHERE service = {service:String} AND window_s = 60
    AND audits.end > fromUnixTimestamp64Milli({oldest:Int64})
    AND audits.end > (
        SELECT max(end) FROM audits FINAL
        WHERE service = {service:String} AND window_s = 60 AND verdict != {verdict:String}
            AND audits.end > fromUnixTimestamp64Milli({oldest:Int64}))
"""
_DAY_MS: Final = 86_400_000
_SPARKS: Final = """
SELECT service, toUnixTimestamp64Milli(end) AS end_ms, p50_ms, p95_ms, p99_ms
FROM audits FINAL
WHERE window_s = 60 AND audits.end > fromUnixTimestamp({since:Int64})
ORDER BY audits.end DESC LIMIT 60 BY service
"""
_FIRING: Final = """
SELECT service, countIf(after = 'firing') AS firing
FROM (SELECT * FROM alert_changes FINAL ORDER BY sequence DESC LIMIT 1 BY service, alert)
GROUP BY service
"""
_BUDGETS: Final = """
SELECT service, objective, toUnixTimestamp(at) AS at_s, total, bad, target_pct, left_pct,
    corrected_pct, burn_rate, toUnixTimestamp(exhausted_at) AS exhausted_s
FROM budgets FINAL
ORDER BY at DESC LIMIT 1 BY service, objective
"""
_BUDGETS_OF: Final = _BUDGETS.replace(
    "budgets FINAL", "budgets FINAL WHERE service = {service:String}"
)

Rows = list[dict[str, Any]]


def newest(store: ClickHouse) -> Rows:
    """Return the newest pane of each service that had one in the last 30 days of any."""
    return store.query(_NEWEST).records()


def seen(store: ClickHouse, service: str) -> dict[str, Any] | None:
    """Return from when to when there are panes of a service; None when there are none."""
    rows = store.query(_SEEN, {"service": service}).records()
    return rows[0] if rows else None


def latest_of(store: ClickHouse, service: str) -> dict[str, Any] | None:
    """Return the newest audit of a minute of a service; None when there is none."""
    rows = store.query(_LATEST_OF, {"service": service, "since": 0}).records()
    return rows[0] if rows else None


def since(store: ClickHouse, latest: dict[str, Any]) -> int:
    """Return since when the verdict of the newest audit holds, in milliseconds; a day at most."""
    oldest = int(latest["end_ms"]) - _DAY_MS
    wanted = {"service": latest["service"], "verdict": latest["verdict"], "oldest": oldest}
    return int(store.query(_SINCE, wanted).rows[0][0])


def latest(store: ClickHouse, since_s: int) -> Rows:
    """Return the newest audit of a minute after a time, by service."""
    return store.query(_LATEST, {"since": since_s}).records()


def sparks(store: ClickHouse, since_s: int) -> Rows:
    """Return the percentiles of the last sixty audits of a minute after a time, newest first."""
    return store.query(_SPARKS, {"since": since_s}, max_rows=60_000).records()


def firing(store: ClickHouse) -> dict[str, int]:
    """Return how many alerts fire, by service."""
    return {str(service): int(count) for service, count in store.query(_FIRING).rows}


def budgets(store: ClickHouse) -> Rows:
    """Return what is left of each error budget; the table must be there."""
    return store.query(_BUDGETS).records()


def budgets_of(store: ClickHouse, service: str) -> Rows:
    """Return the same of one service."""
    return store.query(_BUDGETS_OF, {"service": service}).records()
