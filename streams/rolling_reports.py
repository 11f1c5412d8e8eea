"""The full report of rolling windows, drawn from ClickHouse at intervals of event time.

Percentiles and breaches are judged live by `streams.service_audit`; what takes longer to find
(intervals, shape, causes, fixes) is found here, in a thread beside, once all of a window is in
ClickHouse. What a worker did not draw before it died, the next owner of the service does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import structlog

from tailbudget.schemas.errors import UnavailableError
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.anomaly_rows import suspected_rows
from tailbudget.streams.audit_rows import audit_row
from tailbudget.streams.history import SECOND_NS, Span
from tailbudget.streams.service_report import Past, service_report

log = structlog.get_logger()

EVERY_S: Final[Mapping[int, int]] = MappingProxyType({300: 300, 3_600: 300, 86_400: 3_600})
"""Length of a window to how often its report is drawn: at the end of a rollup, so that it reads
rollups alone."""

MOST_BEHIND: Final = 12
"""Reports of a window that are drawn later: those of an hour, or of half a day. Of what is older,
as when a long log is replayed, `tailbudget report` draws any range."""


class RollingReports:
    """Draws the reports of the services that this worker owns.

    Args:
        settings: of the worker.
        store: ClickHouse.
        settled: returns up to when each owned service is complete in ClickHouse, nanoseconds.

    Attributes:
        drawn: reports written.
        failed: reports that could not be drawn, and will not be tried again.
    """

    def __init__(
        self, settings: Settings, store: ClickHouse, settled: Callable[[], Mapping[str, int]]
    ) -> None:
        self.drawn = 0
        self.failed = 0
        self._settings = settings
        self._store = store
        self._settled = settled
        self._done: dict[str, dict[int, int]] = {}
        self._newest: dict[str, Audit] = {}

    def newest(self, service: str) -> Audit | None:
        """Return the newest report of a service that was drawn here; None before the first."""
        return self._newest.get(service)

    def status(self) -> dict[str, Any]:
        """Return what an operator wants to know, for `/status`."""
        return {"reports_drawn": self.drawn, "reports_failed": self.failed}

    async def draw(self) -> None:
        """Draw what is due; what ClickHouse does not answer now is drawn the next time."""
        owned = self._settled()
        # Whoever has a service in between draws its reports, too.
        self._done = {name: done for name, done in self._done.items() if name in owned}
        self._newest = {name: one for name, one in self._newest.items() if name in owned}
        for service, settled_ns in sorted(owned.items()):
            try:
                await self._draw_service(service, settled_ns)
            except UnavailableError as error:
                log.warning("no report", service=service, error=error.message)
                return

    async def _draw_service(self, service: str, settled_ns: int) -> None:
        if service not in self._done:
            self._done[service] = await asyncio.to_thread(self._store.newest_reports, service)
        for window_s, end_ns in due(self._done[service], settled_ns):
            if service not in self._settled():
                return
            await self._try(service, window_s, end_ns)
            self._done[service][window_s] = end_ns

    async def _try(self, service: str, window_s: int, end_ns: int) -> None:
        try:
            self.drawn += await asyncio.to_thread(self._draw, service, window_s, end_ns)
        except UnavailableError:
            raise
        except Exception:  # a report that cannot be drawn must not stop what judges and alerts
            self.failed += 1
            log.exception("no report", service=service, window_s=window_s, end_ns=end_ns)

    def _draw(self, service: str, window_s: int, end_ns: int) -> bool:
        """Write the report of a window; return whether there was anything in it."""
        span = Span(end_ns - window_s * SECOND_NS, end_ns)
        now_ns = time.time_ns()
        audit = service_report(self._settings, self._store, Past(service, span, now_ns=now_ns))
        if not audit.provenance.n:
            return False
        row = audit_row(audit, window_s=window_s, end_ns=end_ns, drawn_ns=now_ns)
        self._store.write_audits([row])
        self._store.write_cold_windows(suspected_rows(audit))
        self._newest[service] = audit
        return True


def due(done: Mapping[int, int], settled_ns: int) -> list[tuple[int, int]]:
    """Return (window, end) of the reports that are due, the oldest first.

    Args:
        done: where the newest report of each window ends; windows without any lack.
        settled_ns: up to when everything is in ClickHouse.
    """
    found = []
    for window_s, every_s in EVERY_S.items():
        every_ns = every_s * SECOND_NS
        newest_ns = settled_ns // every_ns * every_ns
        first_ns = newest_ns - (MOST_BEHIND - 1) * every_ns
        if window_s in done:
            first_ns = max(first_ns, done[window_s] + every_ns)
        found += [(window_s, end_ns) for end_ns in range(first_ns, newest_ns + 1, every_ns)]
    return sorted(found, key=lambda one: (one[1], one[0]))
