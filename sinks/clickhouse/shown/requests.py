"""Whole requests to look at."""

from __future__ import annotations

from typing import Any, Final

from tailbudget.sinks.clickhouse.client import ClickHouse
from tailbudget.sinks.clickhouse.shown.look import CHOSEN, Look

_SLOWEST: Final = f"""
SELECT id, toInt64(intDiv(ts_ns, 1000000)) AS at_ms, cohort, dims, total_ms,
    arrayFilter(
        pair -> pair.1 NOT IN ('total', 'failed') AND NOT isNaN(pair.2),
        arrayZip(stages, of_stages)) AS stages_ms
FROM
(
    SELECT id, ts_ns, p.cohort AS cohort, p.dims AS dims, p.stages AS stages,
        arraySlice(p.sample_values, (row - 1) * (length(p.stages) + length(p.covariates)) + 1,
            length(p.stages)) AS of_stages,
        of_stages[indexOf(p.stages, 'total')] AS total_ms
    FROM current_panes AS p
    ARRAY JOIN p.sample_id AS id, p.sample_ts_ns AS ts_ns, arrayEnumerate(p.sample_id) AS row
    WHERE {CHOSEN}
)
WHERE NOT isNaN(total_ms)
ORDER BY total_ms DESC, id
LIMIT 10
"""


def slowest(store: ClickHouse, look: Look) -> list[dict[str, Any]]:
    """Return the slowest requests that panes keep, with their stages."""
    return store.query(_SLOWEST, look.parameters()).records()
