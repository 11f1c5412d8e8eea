"""What slow requests spend their time on, over time."""

from __future__ import annotations

from typing import Any, Final

from tailbudget.sinks.clickhouse.client import ClickHouse
from tailbudget.sinks.clickhouse.shown.look import CHOSEN, Look

# The view `tail`, for each step of a range.
_SLOW: Final = f"""
WITH
    buckets AS
    (
        SELECT
            toUnixTimestamp(toStartOfInterval(p.pane, toIntervalSecond({{step:UInt32}}))) AS start,
            p.stages AS stages, bucket, sum(n_here) AS n, sumForEach(ns_here) AS ns
        FROM current_panes AS p
        ARRAY JOIN
            p.profile_b AS bucket,
            p.profile_n AS n_here,
            arrayMap(
                r -> arraySlice(p.profile_ns, (r - 1) * length(p.stages) + 1, length(p.stages)),
                arrayEnumerate(p.profile_b)) AS ns_here
        WHERE {CHOSEN}
        GROUP BY start, stages, bucket
    ),
    placed AS
    (
        SELECT
            start, stages, ns,
            sum(n) OVER (PARTITION BY start, bucket) AS size,
            sum(n) OVER (PARTITION BY start ORDER BY bucket) AS last,
            sum(n) OVER (PARTITION BY start) AS total,
            toInt64(intDiv(total * 95 + 99, 100)) AS low,
            toInt64(intDiv(total * 99 + 99, 100)) AS high,
            greatest(least(toInt64(last), high) - greatest(toInt64(last - size), low - 1), 0) / size
                AS share
        FROM buckets
    )
SELECT start, stage, any(high - low + 1) AS slow_n, sum(stage_ns * share) / slow_n / 1e6 AS mean_ms
FROM placed
ARRAY JOIN stages AS stage, ns AS stage_ns
WHERE stage != 'failed'
GROUP BY start, stage
ORDER BY start, stage
"""


def slow_requests(store: ClickHouse, look: Look) -> list[dict[str, Any]]:
    """Return the mean of each stage over the slow requests (P95 to P99) of each step."""
    return store.query(_SLOW, look.parameters(), max_rows=40_000).records()
