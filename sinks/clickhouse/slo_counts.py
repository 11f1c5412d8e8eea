"""Good and bad requests of an objective over weeks, added up by ClickHouse."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tailbudget.schemas.cohorts import OTHER, cohort_text
from tailbudget.schemas.objectives import Objective
from tailbudget.schemas.summary import TOTAL
from tailbudget.schemas.tally import Tally
from tailbudget.sinks.clickhouse.connection import Connection

_SECOND_NS: Final = 1_000_000_000
_SQL: Final = f"""
SELECT
    start,
    sumIf(requests, inside = 1 AND known) AS total,
    sumIf(bad_here, inside = 1 AND known) AS bad,
    sumIf(requests, inside = -1 OR inside = 1 AND NOT known) AS unknown
FROM
(
    SELECT
        toUInt32(intDiv(toUnixTimestamp(p.pane), {{slice:UInt32}}) * {{slice:UInt32}}) AS start,
        p.requests AS requests,
        INSIDE AS inside,
        indexOf(p.thresholds_ms, {{threshold:Float64}}) AS place,
        {{threshold:Float64}} = 0 OR place > 0 AS known,
        if({{threshold:Float64}} = 0, p.failed, arrayElement(p.over, place)) AS bad_here
    FROM current_panes AS p
    WHERE p.service = {{service:String}} AND p.stage = '{TOTAL}'
        AND p.pane >= {{since:UInt32}} AND p.pane < {{until:UInt32}}
)
GROUP BY start
HAVING total > 0 OR unknown > 0
ORDER BY start
"""


def read_tally(
    connection: Connection, objective: Objective, since_ns: int, until_ns: int, slice_s: int
) -> Tally:
    """Return the requests of an objective in the stored panes that start in a range.

    Raises:
        ClickHouseError: it may work later.
    """
    wanted: dict[str, Any] = {
        "service": objective.service,
        "threshold": objective.threshold_ms or 0.0,
        "slice": slice_s,
        "since": max(since_ns, 0) // _SECOND_NS,
        "until": min(-(-until_ns // _SECOND_NS), 2**32 - 1),
        "other": cohort_text(OTHER),
    }
    for place, (dimension, value) in enumerate(objective.cohort):
        wanted |= {f"dimension{place}": dimension, f"value{place}": value}
    sql = _statement(len(objective.cohort))
    answer = connection.request(
        f"counting requests of {objective.service}",
        lambda client: client.query(sql, parameters=wanted),
    )
    columns = np.array([row[:4] for row in answer.result_rows], np.int64).reshape(-1, 4).T
    return Tally(slice_s * _SECOND_NS, columns[0] * _SECOND_NS, *columns[1:])


def _statement(dimensions: int) -> str:
    """Return the query: 1 is inside of the cohort, 0 outside, and -1 not known any more."""
    if not dimensions:
        return _SQL.replace("INSIDE", "1")
    same = " AND ".join(
        f"p.dims[{{dimension{n}:String}}] = {{value{n}:String}}" for n in range(dimensions)
    )
    unsure = "p.cohort IN ('', {other:String})"
    return _SQL.replace("INSIDE", f"multiIf({unsure}, -1, {same}, 1, 0)")
