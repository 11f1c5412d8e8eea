"""The last hour of a service, for the picture of an alert."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import structlog

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.errors import TailbudgetError
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.messages.picture import LastHour, png

log = structlog.get_logger()

PATIENCE_S: Final = 0.3
"""How long a message waits for its picture; without one it says the same."""

_MINUTES: Final = 60
_MINUTE_NS: Final = 60 * 10**9
_PERCENTILES: Final = frozenset({"p50", "p95", "p99"})
_SQL: Final = """
SELECT toUnixTimestamp(start) AS at, {column}
FROM latency(window = 60)
WHERE service = {{service:String}} AND stage = 'total'
    AND start >= toDateTime({{since:UInt32}}, 'UTC')
    AND start <= toDateTime({{until:UInt32}}, 'UTC')
ORDER BY start
"""


class LastHourPictures:
    """Pictures of the last hour before an alert, from what ClickHouse has.

    Args:
        store: where the panes are.
    """

    def __init__(self, store: ClickHouse) -> None:
        self._store = store

    async def __call__(self, alert: Alert) -> bytes | None:
        """Return the picture; None where there is none in time."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await asyncio.to_thread(self._draw, alert)
        except (TimeoutError, TailbudgetError) as error:
            log.debug("no picture", alert_id=alert.alert_id, error=repr(error))
            return None

    def _draw(self, alert: Alert) -> bytes | None:
        last_ns = alert.at_ns // _MINUTE_NS * _MINUTE_NS
        first_ns = last_ns - (_MINUTES - 1) * _MINUTE_NS
        name = alert.alert if alert.alert in _PERCENTILES else "p99"
        parameters = {
            "service": alert.service,
            "since": first_ns // 10**9,
            "until": last_ns // 10**9,
        }
        answer = self._store.query(_SQL.format(column=f"{name}_ms"), parameters)
        return png(_hour(alert, name, first_ns, answer.rows))


def _hour(alert: Alert, name: str, first_ns: int, rows: Sequence[Sequence[Any]]) -> LastHour:
    known = {int(at) * 10**9: value for at, value in rows}
    at_ns = [first_ns + minute * _MINUTE_NS for minute in range(_MINUTES)]
    return LastHour(
        heading=f"{alert.service} {name}, last hour",
        at_ns=at_ns,
        value_ms=[known.get(at) for at in at_ns],
        slo_ms=alert.slo_ms,
        since_ns=alert.since_ns,
        until_ns=(alert.cleared_ns or alert.at_ns) if alert.state == "resolved" else None,
    )
