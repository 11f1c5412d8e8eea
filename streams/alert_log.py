"""A change of an alert as ClickHouse keeps it, and back; and its way to the topic."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import orjson

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.alert_rows import ChangeRow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.retrying import retrying

PATIENCE_S: Final = 0.1
"""How long an alert waits for ClickHouse, where a write of panes may be before it: the whole way to
chat is to take less than a second. Whoever goes on without the row finds the same number told."""


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


async def publish(alerts: Sequence[Alert], store: ClickHouse, outbox: Outbox) -> None:
    """Keep changes in ClickHouse and send them to the alerts topic, in that order.

    A worker that takes over reads where alerts stand from ClickHouse, so that a change is there
    before anybody is told of it. A ClickHouse that is away holds an alert up for `PATIENCE_S`
    only; whoever delivers it enters it later.
    """
    if not alerts:
        return
    rows = [change_row(alert) for alert in alerts]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            await retrying(lambda: asyncio.to_thread(store.write_changes, rows))
    for alert in alerts:
        await outbox.alert(alert.service, orjson.dumps(alert.to_payload()))
