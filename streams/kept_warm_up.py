"""How long a service is cold after a deploy: as its deploys taught, or as its settings say."""

from __future__ import annotations

from typing import Final

from tailbudget.schemas.settings import Settings
from tailbudget.streams.kept_budgets import Query
from tailbudget.streams.sql_text import sql_text

_LEARNT: Final = """
SELECT argMax(learnt_min, (start, written)) FROM cold_windows FINAL
WHERE service = {service} AND source != 'suspected' AND isNotNull(learnt_min)
HAVING count() > 0
"""


def learnt_min(query: Query, service: str) -> float | None:
    """Return minutes until a service is warm after a deploy, as last learnt; None if it is not.

    Raises:
        ClickHouseError: it does not answer.
    """
    rows = query(_LEARNT.format(service=sql_text(service)))
    return float(rows[0][0]) if rows else None


def cold_min(settings: Settings, query: Query, service: str) -> float:
    """Return minutes after a deploy that count as cold: as learnt, else `cold_start_window_min`.

    Raises:
        ClickHouseError: it does not answer.
    """
    return learnt_min(query, service) or settings.service(service).cold_start_window_min
