"""The last hour of a service, for the picture of an alert.

The audit that ends with a minute has its percentile already, and merging the sketches of an hour's
panes takes over ten times as long (`tests/bench/last_hour.py`). A log that was read faster than it
was written has panes for all of the hour, and audits of its end only.
"""

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
_ENOUGH: Final = _MINUTES - 1
"""Minutes whose audits say it all: the one that runs may have none yet."""

FROM_AUDITS: Final = """
SELECT intDiv(toUnixTimestamp(end) - 1, 60) * 60 AS at, argMax(ifNull({column}, max_ms), end)
FROM audits FINAL
WHERE service = {{service:String}} AND window_s = 60
    AND end > toDateTime({{since:UInt32}}, 'UTC')
    AND end <= toDateTime({{until:UInt32}} + 60, 'UTC')
GROUP BY at
ORDER BY at
"""
"""The newest audit that ends in each minute. It counts failures as beyond every target; where they
decide the percentile, it is no less than the slowest success."""

FROM_PANES: Final = """
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
        store: where audits and panes are.
        patience_s: how long to wait for one.
    """

    def __init__(self, store: ClickHouse, patience_s: float = PATIENCE_S) -> None:
        self._store = store
        self._patience_s = patience_s

    async def __call__(self, alert: Alert) -> bytes | None:
        """Return the picture; None where there is none in time."""
        try:
            async with asyncio.timeout(self._patience_s):
                return await asyncio.to_thread(self._draw, alert)
        except (TimeoutError, TailbudgetError) as error:
            log.debug("no picture", alert_id=alert.alert_id, error=repr(error))
            return None

    def _draw(self, alert: Alert) -> bytes | None:
        return png(last_hour(self._store, alert))


def last_hour(store: ClickHouse, alert: Alert) -> LastHour:
    """Return the percentile of each minute of the hour before an alert.

    Raises:
        ClickHouseError: it does not answer.
    """
    last_ns = alert.at_ns // _MINUTE_NS * _MINUTE_NS
    first_ns = last_ns - (_MINUTES - 1) * _MINUTE_NS
    name = alert.alert if alert.alert in _PERCENTILES else "p99"
    bounds = {"service": alert.service, "since": first_ns // 10**9, "until": last_ns // 10**9}
    rows = store.query(FROM_AUDITS.format(column=f"{name}_ms"), bounds).rows
    if len(rows) < _ENOUGH:
        rows = store.query(FROM_PANES.format(column=f"{name}_ms"), bounds).rows
    return _hour(alert, name, first_ns, rows)


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
