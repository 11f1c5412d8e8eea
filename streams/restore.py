"""Filling the windows of a service that a worker takes over from what ClickHouse has."""

from __future__ import annotations

import asyncio

from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.percentile_alerts import SECOND_NS
from tailbudget.streams.retrying import retrying
from tailbudget.streams.service_audit import WINDOWS_S, ServiceAudit


async def restore(audit: ServiceAudit, store: ClickHouse, *, newest_ns: int, event_ns: int) -> None:
    """Add recent panes; in threads, for many cohorts take seconds.

    Args:
        audit: of a service that nothing was added to.
        store: where the panes are.
        newest_ns: start of the newest pane there.
        event_ns: event time; audits from then on are as if the worker had seen all panes.
    """
    now_ns = newest_ns if replays(newest_ns, event_ns) else min(newest_ns, event_ns)
    name, since_ns, fine_ns = audit.service, audit.reach_ns(now_ns), audit.fine_ns(now_ns)
    totals = await retrying(lambda: asyncio.to_thread(store.recent_totals, name, since_ns, fine_ns))
    await asyncio.to_thread(audit.restore, totals, fine_ns=fine_ns)


def replays(newest_ns: int, event_ns: int) -> bool:
    """Return whether a source is so far behind that it replays history.

    Nothing of what it sends is in the windows that end at the newest pane.
    """
    return newest_ns - event_ns > WINDOWS_S[-1] * SECOND_NS
