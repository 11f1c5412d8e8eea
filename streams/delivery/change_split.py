"""How much of an incident's p99 is the workload's: its split against the time before.

Read from ClickHouse, beside the way of an alert: what has only begun has no requests to split,
and is told at once. A recovery and a slow burn have.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import structlog

from tailbudget.models.decompose import (
    COLD_START,
    FAILURES,
    REGRESSION,
    WORKLOAD,
    change_ms,
    decompose,
)
from tailbudget.models.sides import all_requests
from tailbudget.schemas.alert import Alert
from tailbudget.schemas.errors import TailbudgetError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.history import Span
from tailbudget.streams.service_report import Past, past_evidence

log = structlog.get_logger()

Split = Callable[[Alert], Awaitable[Alert]]

SHORTEST_NS: Final = 60 * 10**9
"""An incident shorter than the window of a percentile has no p99 of its own."""

LONGEST_NS: Final = 3600 * 10**9
BEFORE_NS: Final = 300 * 10**9
"""At least so much is read of the time before: a p99 takes a thousand requests."""

FIRING_PATIENCE_S: Final = 0.3
"""As for a picture: the message is not to wait for it."""

OVER_PATIENCE_S: Final = 5.0
_MOST_KEPT: Final = 64


class ChangeSplits:
    """Splits the change of the p99 of an incident; each once, however many channels tell it.

    Args:
        settings: say what a service's cold windows are.
        store: where the panes are.
    """

    def __init__(self, settings: Settings, store: ClickHouse) -> None:
        self._settings = settings
        self._store = store
        self._made: OrderedDict[tuple[str, int], asyncio.Task[Alert]] = OrderedDict()

    async def __call__(self, alert: Alert) -> Alert:
        """Return the alert with its split, where it is known in time."""
        spans = spans_of(alert)
        if spans is None:
            return alert
        key = alert.alert_id, alert.sequence
        if key not in self._made:
            self._made[key] = asyncio.ensure_future(self._read(alert, *spans))
            if len(self._made) > _MOST_KEPT:
                self._made.popitem(last=False)
        patience_s = FIRING_PATIENCE_S if alert.state == "firing" else OVER_PATIENCE_S
        done, _ = await asyncio.wait([self._made[key]], timeout=patience_s)
        return self._made[key].result() if done else alert

    async def _read(self, alert: Alert, before: Span, now: Span) -> Alert:
        try:
            return await asyncio.to_thread(self._split, alert, before, now)
        except TailbudgetError as error:
            log.debug("no split", alert_id=alert.alert_id, error=repr(error))
            return alert

    def _split(self, alert: Alert, before: Span, now: Span) -> Alert:
        old, new = (
            past_evidence(self._settings, self._store, Past(alert.service, span, time.time_ns()))
            for span in (before, now)
        )
        parts = {part.part: part.delta_ms for part in decompose(old, new)}
        return replace(
            alert,
            p99_change_ms=change_ms(all_requests(old), all_requests(new)),
            change_failures_ms=parts.get(FAILURES),
            change_cold_start_ms=parts.get(COLD_START),
            change_workload_ms=parts.get(WORKLOAD),
            change_regression_ms=parts.get(REGRESSION),
        )


def spans_of(alert: Alert) -> tuple[Span, Span] | None:
    """Return the time before an incident and the newest hour of it; None while it is too short."""
    began_ns = alert.since_ns if alert.onset_ns is None else alert.onset_ns
    if began_ns is None or alert.cohort or alert.state not in ("firing", "resolved"):
        return None
    end_ns = alert.cleared_ns or alert.at_ns
    length_ns = min(end_ns - began_ns, LONGEST_NS)
    if length_ns < SHORTEST_NS:
        return None
    before = Span(began_ns - max(length_ns, BEFORE_NS), began_ns)
    return before, Span(end_ns - length_ns, end_ns)
