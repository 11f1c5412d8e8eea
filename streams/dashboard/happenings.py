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

_SECOND_NS: Final = 1_000_000_000
_MINUTE_NS: Final = 60 * _SECOND_NS


def happenings(settings: Settings, store: ClickHouse, tables: Tables, look: Look) -> dict[str, Any]:
    """Return deploys, cold windows, anomalies and alerts in a range; None is not measured.

    Raises:
        ClickHouseError: it does not answer.
    """
    chosen = settings.service(look.service)
    longest_ns = int(chosen.cold_start_window_min * _MINUTE_NS)
    since_ns = look.since_s * _SECOND_NS - longest_ns
    until_ns = look.until_s * _SECOND_NS
    deploys = [row for row in store.recent_deploys(look.service, since_ns) if row.at_ns < until_ns]
    cold = cold_windows(deploys, look.service, chosen.cold_start_window_min, settings.environment)
    return {
        "deploys": [asdict(row) for row in deploys],
        "cold": [asdict(window) for window in cold if window.start_ns < until_ns],
        "learnt": shown.learnt_cold_windows(store, look) if "cold_windows" in tables else None,
        "anomalies": shown.anomalies(store, look) if "anomalies" in tables else None,
        "models": shown.models(store, look) if "shape_models" in tables else None,
        "alerts": shown.alerts(store, look) if "alert_changes" in tables else [],
    }
