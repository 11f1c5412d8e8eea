"""The data of the alerts page."""

from __future__ import annotations

from typing import Any, Final

import orjson

from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.shown import alerts as shown
from tailbudget.streams.dashboard.answers import Tables

_TOLD: Final = (
    *("tail_driver", "tail_share_pct", "cause", "evidence", "first_step", "request_id"),
    *("measured_ms", "slo_ms", "burn_rate", "worst_cohort", "kind"),
)
"""Keys of an alert's message that the page tells."""


def alerts(store: ClickHouse, tables: Tables) -> dict[str, Any]:
    """Return how alerts stand, how they moved, and what became of their notices.

    Raises:
        ClickHouseError: it does not answer.
    """
    known = "alert_changes" in tables
    return {
        "alerts": [_explained(row) for row in shown.standing(store)] if known else [],
        "changes": shown.changes(store) if known else [],
        "notices": shown.notices(store) if "alert_notices" in tables else [],
    }


def _explained(row: dict[str, Any]) -> dict[str, Any]:
    message = orjson.loads(row.pop("payload") or "{}")
    return row | {name: message.get(name) for name in _TOLD}
