"""A change of an alert as ClickHouse keeps it, and back."""

from __future__ import annotations

import orjson

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.alert_rows import ChangeRow


def change_row(alert: Alert) -> ChangeRow:
    """Return the row of a change."""
    return ChangeRow(
        service=alert.service,
        alert=alert.alert,
        sequence=alert.sequence,
        at_ns=alert.at_ns,
        alert_id=alert.alert_id,
        before=alert.before,
        after=alert.state,
        reason=alert.change_reason,
        detail=alert.reason,
        severity=alert.severity,
        began_ns=alert.since_ns,
        cleared_ns=alert.cleared_ns,
        budget_left_pct=alert.budget_left_pct,
        budget_cost_pct=alert.budget_cost_pct,
        state=alert.state_json,
        payload=orjson.dumps(alert.to_payload()).decode(),
    )


def alert_of(row: ChangeRow) -> Alert:
    """Return the change that a row keeps.

    Raises:
        KeyError, TypeError: the row's message is none of ours.
    """
    return Alert.from_payload(orjson.loads(row.payload))
