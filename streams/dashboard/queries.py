"""The ten ready queries of the SQL page: the questions of docs/sql.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Ready:
    """A question with its query.

    Attributes:
        question: what it answers.
        sql: the query; SERVICE, FROM and TO in braces are put in as quoted texts.
    """

    question: str
    sql: str


READY: Final = (
    Ready(
        "How slow is each stage, minute by minute?",
        """SELECT start, stage, n, p50_ms, p95_ms, p99_ms, max_ms
FROM latency(window = 60)
WHERE service = {SERVICE} AND stage != 'failed' AND start >= {FROM} AND start < {TO}
ORDER BY start, stage""",
    ),
    Ready(
        "Did users get what was promised, with failures counted as the slowest requests?",
        """SELECT start, requests, failed, p50_ms, p95_ms, p99_ms, failures_from_pct
FROM end_to_end(window = 300)
WHERE service = {SERVICE} AND start >= {FROM} AND start < {TO}
ORDER BY start""",
    ),
    Ready(
        "How much of the error budget did each hour spend, for a budget of 1 %?",
        """SELECT start, threshold_ms, requests, bad, good_pct, burn_rate
FROM slo_compliance(window = 3600, budget_pct = 1)
WHERE service = {SERVICE} AND start >= {FROM} AND start < {TO}
ORDER BY start, threshold_ms""",
    ),
    Ready(
        "Which stage makes slow requests slow?",
        """SELECT stage, p50_ms, p99_ms, mean_fast_ms, mean_slow_ms, delta_ms, tail_share_pct
FROM stage_table(service = {SERVICE}, from = {FROM}, to = {TO})
WHERE stage NOT IN ('total', 'failed')
ORDER BY delta_ms DESC""",
    ),
    Ready(
        "Which route has more than its share of slow requests?",
        """SELECT value AS route, requests, failed, p99_ms, delta_ms,
    slow_share_pct, traffic_share_pct
FROM cohort_table(service = {SERVICE}, from = {FROM}, to = {TO}, dimension = 'route')
ORDER BY slow_share_pct - traffic_share_pct DESC""",
    ),
    Ready(
        "Does latency follow the input?",
        """SELECT stage, covariate, n, round(r2, 3) AS r2, slope_ms_per_unit, intercept_ms,
    loglog_slope
FROM shape(service = {SERVICE}, from = {FROM}, to = {TO})
ORDER BY r2 DESC""",
    ),
    Ready(
        "Is the tail a cold start's?",
        """SELECT deploys, requests, excluded, unfiltered_p99_ms, filtered_p99_ms
FROM cold_filtered(service = {SERVICE}, from = {FROM}, to = {TO}, minutes = 5, env = '')""",
    ),
    Ready(
        "What was the slowest request in a thousand, for each stage of each hour?",
        """SELECT start, stage, n, ms AS p999_ms
FROM percentile(q = 0.999, window = 3600)
WHERE service = {SERVICE} AND start >= {FROM} AND start < {TO}
ORDER BY start, stage""",
    ),
    Ready(
        "When did the verdict change, and what drove the tail then?",
        """SELECT end, verdict, requests, p99_ms, slo_p99_ms, tail_driver
FROM audits FINAL
WHERE service = {SERVICE} AND window_s = 60 AND end >= {FROM} AND end < {TO}
ORDER BY end""",
    ),
    Ready(
        "What became of the records that are in no figure?",
        """SELECT reason, sum(records) AS records
FROM ledger(window = 3600)
WHERE service = {SERVICE} AND reason != 'accepted'
GROUP BY reason
ORDER BY records DESC""",
    ),
)
