"""The queries of `tailbudget top`.

Names stand in them in hexadecimal: a service may be called anything.
"""

from __future__ import annotations

from typing import Final

from tailbudget.streams.sql_text import sql_text

WINDOWS_S: Final = {60: "last minute", 300: "last 5 minutes", 3600: "last hour"}
"""Windows that can be looked at, as a person calls them."""

MOST_COHORTS: Final = 100
MOST_ALERTS: Final = 200

_NEWEST: Final = """
    SELECT * FROM audits FINAL
    WHERE window_s = {window_s} AND (service, end) IN
        (SELECT service, max(end) FROM audits WHERE window_s = {window_s} GROUP BY service)
"""

_AUDIT: Final = """
    service, verdict, requests, failed, p50_ms, p95_ms, p99_ms, max_ms,
    slo_p50_ms, slo_p95_ms, slo_p99_ms, tail_driver, toUnixTimestamp64Milli(end) AS end_ms
"""

_SERVICES: Final = """
SELECT {audit} FROM ({newest})
ORDER BY verdict = 'breach' DESC, verdict = 'at_risk' DESC, service
"""

_SERVICE: Final = "SELECT {audit} FROM ({newest}) WHERE service = {service}"

_STAGES: Final = """
SELECT stage, role, n, p50_ms, p95_ms, p99_ms, mean_fast_ms, mean_slow_ms, delta_ms, tail_share_pct
FROM audit_stages FINAL
WHERE service = {service} AND window_s = {window_s} AND (end, version) IN
    (SELECT end, version FROM ({newest}) WHERE service = {service})
ORDER BY delta_ms DESC NULLS LAST, stage
"""

_COHORTS: Final = """
SELECT dimension, value, n, p99_ms, delta_ms, slow_share_pct, traffic_share_pct
FROM audit_cohorts FINAL
WHERE service = {service} AND window_s = {window_s} AND (end, version) IN
    (SELECT end, version FROM ({newest}) WHERE service = {service})
ORDER BY slow_share_pct - traffic_share_pct DESC NULLS LAST, dimension, value
LIMIT {most}
"""

_ALERTS: Final = """
SELECT
    toUnixTimestamp64Milli(at) AS at_ms, service, alert, state, measured_ms, slo_ms, tail_driver,
    reason
FROM alerts FINAL
WHERE {whose}
ORDER BY at DESC, service, alert, state
LIMIT {most}
"""

_OPEN: Final = "SELECT service, alert FROM alerts_open"


def services(window_s: int) -> str:
    """Return the query for the newest audit of every service, the worst first."""
    return _SERVICES.format(audit=_AUDIT, newest=_newest(window_s))


def service(name: str, window_s: int) -> str:
    """Return the query for the newest audit of one service."""
    return _SERVICE.format(audit=_AUDIT, newest=_newest(window_s), service=sql_text(name))


def stages(name: str, window_s: int) -> str:
    """Return the query for the stages of that audit, the tail driver first."""
    newest = _newest(window_s)
    return _STAGES.format(newest=newest, service=sql_text(name), window_s=window_s)


def cohorts(name: str, window_s: int) -> str:
    """Return the query for its cohorts, the most over-represented in the tail first."""
    newest = _newest(window_s)
    return _COHORTS.format(
        newest=newest, service=sql_text(name), window_s=window_s, most=MOST_COHORTS
    )


def alerts(name: str | None = None) -> str:
    """Return the query for the newest changes of alerts, of one service or of all."""
    whose = "1" if name is None else f"service = {sql_text(name)}"
    return _ALERTS.format(whose=whose, most=MOST_ALERTS)


def alerts_open() -> str:
    """Return the query for the alerts that fire now."""
    return _OPEN


def _newest(window_s: int) -> str:
    return _NEWEST.format(window_s=int(window_s))
