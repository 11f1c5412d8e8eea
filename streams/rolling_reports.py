"""The full report of rolling windows, drawn from ClickHouse at intervals of event time.

Percentiles and breaches are judged live by `streams.service_audit`; what takes longer to find
(intervals, shape, causes, fixes) is found here, in a thread beside, once a window has settled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import structlog

from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.errors import UnavailableError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.audit_rows import audit_row
from tailbudget.streams.history import Span
from tailbudget.streams.service_report import Past, service_report

log = structlog.get_logger()

SECOND_NS: Final = 1_000_000_000

EVERY_S: Final[Mapping[int, int]] = MappingProxyType({300: 300, 3_600: 300, 86_400: 3_600})
"""Length of a window to how often its report is drawn: at the end of a rollup, so that it reads
rollups alone."""


class RollingReports:
    """Draws the reports of the services that this worker owns.

    Args:
        settings: of the worker.
        store: ClickHouse.
        services: returns event time of each owned service, nanoseconds.

    Attributes:
        drawn: reports written.
    """

    def __init__(
        self, settings: Settings, store: ClickHouse, services: Callable[[], Mapping[str, int]]
    ) -> None:
        self.drawn = 0
        self._settings = settings
        self._store = store
        self._services = services
        self._done: dict[tuple[str, int], int] = {}

    async def draw(self) -> None:
        """Draw what is due; what ClickHouse does not answer now is drawn the next time."""
        for service, now_ns in sorted(self._services().items()):
            for window_s, end_ns in self._due(service, now_ns):
                try:
                    await asyncio.to_thread(self._draw, service, window_s, end_ns)
                except UnavailableError as error:
                    log.warning("no report", service=service, window_s=window_s, error=str(error))
                    return
                self._done[service, window_s] = end_ns
                self.drawn += 1

    def _due(self, service: str, now_ns: int) -> list[tuple[int, int]]:
        """Return (window, end) of the newest reports that are due."""
        stream = self._settings.stream
        settled_ns = now_ns - int((stream.grace_s + stream.flush_s) * SECOND_NS)
        due = []
        for window_s, every_s in EVERY_S.items():
            end_ns = settled_ns // (every_s * SECOND_NS) * every_s * SECOND_NS
            # The first end that a worker sees was its predecessor's to draw.
            if end_ns > self._done.setdefault((service, window_s), end_ns):
                due.append((window_s, end_ns))
        return due

    def _draw(self, service: str, window_s: int, end_ns: int) -> None:
        span = Span(end_ns - window_s * SECOND_NS, end_ns)
        past = Past(service, span, now_ns=time.time_ns())
        audit = service_report(self._settings, self._store, past)
        if audit.provenance.n:
            row: AuditRow = audit_row(audit, window_s=window_s, end_ns=end_ns, full=True)
            self._store.write_audits([row])
