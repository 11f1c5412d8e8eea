"""Which alerts nobody wants to hear of now: those silenced by a person, and in maintenance.

A silence is of the clock on the wall, for it is people who are to be left in peace; maintenance is
a span of event time, as in the corrected figure of a budget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import structlog

from tailbudget.schemas.errors import UnavailableError
from tailbudget.schemas.objectives import Correction
from tailbudget.schemas.silences import Silence
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_book import Mute
from tailbudget.streams.retrying import retrying

log = structlog.get_logger()

REFRESH_S: Final = 2.0
"""How often silences are read: a new one counts that soon."""


class Silences:
    """The silences of ClickHouse, as of a moment ago.

    Args:
        store: where they are.
    """

    def __init__(self, store: ClickHouse) -> None:
        self._store = store
        self._known: Sequence[Silence] | None = None

    async def refresh(self) -> None:
        """Read them again; while ClickHouse does not answer, those known stay."""
        try:
            self._known = await asyncio.to_thread(self._store.silences, time.time_ns())
        except UnavailableError as error:
            log.debug("silences as they were", error=error.message)

    def running(self) -> list[str]:
        """Return what is silenced now, as "service" or "service/alert"."""
        now_ns = time.time_ns()
        there_are = [one for one in self._known or () if one.begins_ns <= now_ns < one.ends_ns]
        return sorted("/".join(filter(None, (one.service, one.alert))) for one in there_are)

    async def mute(self, service: str, maintenance: Sequence[Correction]) -> Mute:
        """Return what says why an alert of a service is muted; waits for the first reading."""
        if self._known is None:
            now_ns = time.time_ns()
            self._known = await retrying(lambda: asyncio.to_thread(self._store.silences, now_ns))

        def why(alert: str, now_ns: int) -> str:
            said = next((one.why for one in maintenance if one.covers(now_ns)), "")
            return said or self._silenced(service, alert)

        return why

    def _silenced(self, service: str, alert: str) -> str:
        now_ns = time.time_ns()
        known = self._known or ()
        return next((one.reason for one in known if one.mutes(service, alert, now_ns)), "")
