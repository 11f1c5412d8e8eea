"""The data of a service's charts over time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.slo import QUANTILES, SloTarget
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.shown import latency, requests, services, stages
from tailbudget.sinks.clickhouse.shown.look import Look
from tailbudget.streams.dashboard.answers import Tables
from tailbudget.streams.dashboard.asked import Asked, step_s
from tailbudget.streams.dashboard.happenings import happenings


def look(store: ClickHouse, asked: Asked) -> tuple[Look, dict[str, Any]]:
    """Return what is looked at, and from when to when there are panes of the service.

    Raises:
        ConfigError: there is no such service.
    """
    seen = services.seen(store, asked.service)
    if seen is None:
        raise ConfigError(
            "nothing was recorded of this service",
            remedy="the overview lists those that there are",
        )
    pane_s = int(seen["pane_s"])
    until_s = int(seen["newest_s"]) + pane_s
    since_s = until_s - asked.last_s
    if not asked.last_s:
        since_s, until_s = asked.since_s, asked.until_s
    step = step_s(until_s - since_s, pane_s)
    return Look(asked.service, since_s, until_s, step, asked.cohort), seen


def series(settings: Settings, store: ClickHouse, tables: Tables, asked: Asked) -> dict[str, Any]:
    """Return all series of a service in a range.

    Raises:
        ClickHouseError: it does not answer.
        ConfigError: there is no such service.
    """
    at, seen = look(store, asked)
    slo = settings.service(asked.service).slo
    latest = services.latest_of(store, asked.service)
    slo = slo or _target(latest)
    return {
        "service": asked.service,
        "since_s": at.since_s,
        "until_s": at.until_s,
        "step_s": at.step_s,
        **{name: int(seen[name]) for name in ("newest_s", "oldest_s", "pane_s")},
        "slo": asdict(slo) if slo else None,
        "latest": latest and {**latest, "verdict_since_ms": services.since(store, latest)},
        "percentiles": latency.percentiles(store, at),
        "missed": _burn(latency.missed(store, at), slo),
        "heat": latency.heat(store, at),
        "bands_an_octave": latency.BANDS_AN_OCTAVE,
        "least_ms": latency.LEAST_MS,
        "stages": stages.slow_requests(store, at),
        "requests": requests.slowest(store, at),
        "happenings": happenings(settings, store, tables, at),
        "budgets": services.budgets_of(store, asked.service) if "budgets" in tables else None,
    }


def remembered(store: ClickHouse, service: str) -> SloTarget | None:
    """Return the target that the newest audit was judged by; None when there is none."""
    return _target(services.latest_of(store, service))


def _target(latest: dict[str, Any] | None) -> SloTarget | None:
    """Return the target that the newest audit was judged by."""
    if latest is None or latest["slo_p99_ms"] is None:
        return None
    return SloTarget(**{f"{name}_ms": latest[f"slo_{name}_ms"] for name in QUANTILES})


def _burn(rows: list[dict[str, Any]], slo: SloTarget | None) -> list[dict[str, Any]]:
    """Return the rows of promised latencies, each with its burn rate against what is allowed."""
    if slo is None:
        return []
    allowed = {ms: (name, float(1 - QUANTILES[name])) for name, ms in slo.items()}
    return [
        {**row, "name": name, "burn": row["bad"] / row["requests"] / share}
        for row in rows
        if row["threshold_ms"] in allowed
        for name, share in [allowed[row["threshold_ms"]]]
    ]
