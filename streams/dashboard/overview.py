"""The data of the overview: every service on a line."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.shown import services
from tailbudget.streams.dashboard.answers import Tables

RECENT_S: Final = 86_400
"""Services that had a record within a day of the newest of any are read together."""


def overview(settings: Settings, store: ClickHouse, tables: Tables) -> dict[str, Any]:
    """Return a row a service, with the percentiles of its last minutes, oldest first.

    Raises:
        ClickHouseError: it does not answer.
    """
    seen = services.newest(store)
    since_s = max((int(row["newest_s"]) for row in seen), default=0) - RECENT_S
    latest = {row["service"]: row for row in services.latest(store, since_s)}
    firing = services.firing(store) if "alert_changes" in tables else {}
    left = _lowest(services.budgets(store)) if "budgets" in tables else {}
    sparks = defaultdict(list)
    for row in reversed(services.sparks(store, since_s)):
        sparks[row["service"]].append([row["end_ms"], row["p50_ms"], row["p95_ms"], row["p99_ms"]])
    rows = []
    for one in seen:
        name = one["service"]
        audit = latest.get(name) or services.latest_of(store, name)
        rows.append(
            {
                **one,
                **(audit or {"verdict": None}),
                "firing": firing.get(name, 0),
                "budget": left.get(name),
                "spark": sparks[name],
                "promised": settings.service(name).slo is not None,
            }
        )
    return {"services": rows}


def _lowest(budgets: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return of each service the budget of which least is left."""
    lowest: dict[str, dict[str, Any]] = {}
    for row in budgets:
        known = lowest.get(row["service"])
        if known is None or _left(row) < _left(known):
            lowest[row["service"]] = row
    return lowest


def _left(row: dict[str, Any]) -> float:
    return float("inf") if row["left_pct"] is None else float(row["left_pct"])
