"""What a service promised, as its rolling audits remember."""

from __future__ import annotations

from typing import Final

from tailbudget.schemas.settings import Settings
from tailbudget.schemas.slo import SloTarget
from tailbudget.streams.sql import ask
from tailbudget.streams.sql_text import sql_text

ASSUMED: Final = "the SLO is that of the newest rolling audit, for the settings name none"

_NEWEST: Final = """
SELECT slo_p50_ms, slo_p95_ms, slo_p99_ms FROM audits FINAL
WHERE service = {service} ORDER BY end DESC LIMIT 1
"""


def last_promised(settings: Settings, service: str) -> SloTarget | None:
    """Return the target of the newest rolling audit; None where there is none.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
    """
    rows = ask(settings, _NEWEST.format(service=sql_text(service))).rows
    found = SloTarget(*rows[0]) if rows else SloTarget()
    return found if found.items() else None
