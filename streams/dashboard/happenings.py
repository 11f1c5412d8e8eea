"""What happened to a service, to lay behind its charts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from tailbudget.models.cold_windows import cold_windows
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.shown import happenings as shown
from tailbudget.sinks.clickhouse.shown.look import Look
from tailbudget.streams.dashboard.answers import Tables
from tailbudget.streams.kept_budgets import asking
from tailbudget.streams.kept_warm_up import cold_min

_SECOND_NS: Final = 1_000_000_000
_MINUTE_NS: Final = 60 * _SECOND_NS


def happenings(settings: Settings, store: ClickHouse, tables: Tables, look: Look) -> dict[str, Any]:
    """Return deploys, cold windows, anomalies and alerts in a range; None is not measured.

    Raises:
        ClickHouseError: it does not answer.
    """
    minutes = cold_min(settings, asking(store), look.service)
    since_ns = look.since_s * _SECOND_NS - int(minutes * _MINUTE_NS)
    until_ns = look.until_s * _SECOND_NS
    deploys = [row for row in store.recent_deploys(look.service, since_ns) if row.at_ns < until_ns]
    cold = cold_windows(deploys, look.service, minutes, settings.environment)
    watched = not tables.keys().isdisjoint(("anomalies", "shape_models"))
    return {
        "deploys": [asdict(row) for row in deploys],
        "cold_min": minutes,
        "cold": [asdict(window) for window in cold],
        "suspected": shown.suspected(store, look) if "cold_windows" in tables else None,
        "anomalies": shown.anomalies(store, look) if watched else None,
        "models": shown.models(store, look) if "shape_models" in tables else None,
        "alerts": shown.alerts(store, look) if "alert_changes" in tables else [],
    }
