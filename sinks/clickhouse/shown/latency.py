"""Latency over time: percentiles, promised latencies missed, and the heat map."""

from __future__ import annotations

from typing import Any, Final

from tailbudget.sinks.clickhouse.client import ClickHouse
from tailbudget.sinks.clickhouse.shown.look import CHOSEN, Look

Rows = list[dict[str, Any]]

_START: Final = "toUnixTimestamp(toStartOfInterval(p.pane, toIntervalSecond({step:UInt32})))"
_PERCENTILES: Final = f"""
SELECT
    start, requests, failed, ms[1] AS p50_ms, ms[2] AS p95_ms, ms[3] AS p99_ms
FROM
(
    SELECT
        {_START} AS start,
        sum(p.requests) AS requests,
        sum(p.failed) AS failed,
        min(p.min_ms) AS least,
        max(p.max_ms) AS most,
        arrayMap(
            i -> if(i = 32767, NULL, least(greatest(reinterpretAsFloat64(bitOr(
                bitShiftLeft(toUInt64(i + 64832), 46),
                bitShiftLeft(toUInt64(1), 45))), least), most)),
            quantilesExactWeightedArray(0.5, 0.95, 0.99)(
                arrayPushBack(p.b, toInt16(32767)), arrayPushBack(p.c, p.failed))) AS ms
    FROM current_panes AS p
    WHERE {CHOSEN}
    GROUP BY start
)
WHERE requests > 0
ORDER BY start
"""
_MISSED: Final = f"""
SELECT {_START} AS start, threshold_ms, sum(p.requests) AS requests, sum(bad_here) AS bad
FROM current_panes AS p
ARRAY JOIN p.thresholds_ms AS threshold_ms, p.over AS bad_here
WHERE {CHOSEN}
GROUP BY start, threshold_ms
HAVING requests > 0
ORDER BY start, threshold_ms
"""
_HEAT: Final = f"""
SELECT {_START} AS start, intDiv(bucket, 16) AS band, sum(count_here) AS requests
FROM current_panes AS p
ARRAY JOIN p.b AS bucket, p.c AS count_here
WHERE {CHOSEN}
GROUP BY start, band
ORDER BY start, band
"""
BANDS_AN_OCTAVE: Final = 4
LEAST_MS: Final = 2.0**-10
"""Where band 0 of the heat map begins, as bucket 0 of the sketch does."""


def percentiles(store: ClickHouse, look: Look) -> Rows:
    """Return percentiles of all requests by step, a failure being slower than any success.

    None: that percentile is a failed request.
    """
    return store.query(_PERCENTILES, look.parameters()).records()


def missed(store: ClickHouse, look: Look) -> Rows:
    """Return by step and promised latency how many requests were slower than it, or failed."""
    return store.query(_MISSED, look.parameters()).records()


def heat(store: ClickHouse, look: Look) -> Rows:
    """Return successful requests by step and band; a band is a quarter of an octave wide."""
    return store.query(_HEAT, look.parameters(), max_rows=40_000).records()
