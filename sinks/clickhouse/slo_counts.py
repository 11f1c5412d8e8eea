"""Good and bad requests of an objective over weeks, added up by ClickHouse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from tailbudget.schemas.cohorts import OTHER, cohort_text
from tailbudget.schemas.objectives import Objective
from tailbudget.schemas.summary import TOTAL
from tailbudget.schemas.tally import Tally
from tailbudget.sinks.clickhouse.connection import Connection

_SECOND_NS: Final = 1_000_000_000
AT_ONCE: Final = 16
"""Objectives that one query counts: it reads the panes once, but its text and parameters grow."""

_EACH: Final = """
    sumIf(requests, inside{k} = 1 AND known{k}) AS total{k},
    sumIf(bad_here{k}, inside{k} = 1 AND known{k}) AS bad{k},
    sumIf(requests, inside{k} = -1 OR inside{k} = 1 AND NOT known{k}) AS unknown{k}"""
_EACH_PANE: Final = """
        {inside} AS inside{k},
        indexOf(p.thresholds_ms, {{threshold{k}:Float64}}) AS place{k},
        {{threshold{k}:Float64}} = 0 OR place{k} > 0 AS known{k},
        if({{threshold{k}:Float64}} = 0, p.failed, arrayElement(p.over, place{k})) AS bad_here{k}"""
_SQL: Final = f"""
SELECT
    start,EACH
FROM
(
    SELECT
        toUInt32(intDiv(toUnixTimestamp(p.pane), {{slice:UInt32}}) * {{slice:UInt32}}) AS start,
        p.requests AS requests,EACH_PANE
    FROM current_panes AS p
    WHERE p.service = {{service:String}} AND p.stage = '{TOTAL}'
        AND p.pane >= {{since:UInt32}} AND p.pane < {{until:UInt32}}
)
GROUP BY start
ORDER BY start
"""


def read_tallies(
    connection: Connection,
    objectives: Sequence[Objective],
    since_ns: int,
    until_ns: int,
    slice_s: int,
) -> list[Tally]:
    """Return the requests of objectives of one service in the stored panes that start in a range.

    Raises:
        ClickHouseError: it may work later.
    """
    found: list[Tally] = []
    for low in range(0, len(objectives), AT_ONCE):
        some = objectives[low : low + AT_ONCE]
        wanted: dict[str, Any] = {
            "service": some[0].service,
            "slice": slice_s,
            "since": max(since_ns, 0) // _SECOND_NS,
            "until": min(-(-until_ns // _SECOND_NS), 2**32 - 1),
            "other": cohort_text(OTHER),
        }
        found += _counted(connection, some, wanted)
    return found


def _counted(
    connection: Connection, objectives: Sequence[Objective], wanted: dict[str, Any]
) -> Iterator[Tally]:
    for k, one in enumerate(objectives):
        wanted[f"threshold{k}"] = one.threshold_ms or 0.0
        for n, (dimension, value) in enumerate(one.cohort):
            wanted |= {f"dimension{k}_{n}": dimension, f"value{k}_{n}": value}
    sql = _statement([len(one.cohort) for one in objectives])
    answer = connection.request(
        f"counting requests of {wanted['service']}",
        lambda client: client.query(sql, parameters=wanted),
    )
    width = 1 + 3 * len(objectives)
    columns = np.array([row[:width] for row in answer.result_rows], np.int64).reshape(-1, width).T
    for k in range(len(objectives)):
        total, bad, unknown = columns[1 + 3 * k : 4 + 3 * k]
        some = (total > 0) | (unknown > 0)
        starts_ns = columns[0][some] * _SECOND_NS
        yield Tally(wanted["slice"] * _SECOND_NS, starts_ns, total[some], bad[some], unknown[some])


def _statement(dimensions: Sequence[int]) -> str:
    """Return the query for objectives of so many dimensions each."""
    each = ",".join(_EACH.format(k=k) for k in range(len(dimensions)))
    panes = ",".join(
        _EACH_PANE.format(k=k, inside=_inside(k, count)) for k, count in enumerate(dimensions)
    )
    return _SQL.replace("EACH_PANE", panes).replace("EACH", each)


def _inside(k: int, dimensions: int) -> str:
    """Return what tells where a row is: 1 inside of the cohort, 0 outside, -1 not known."""
    if not dimensions:
        return "1"
    same = " AND ".join(
        f"p.dims[{{dimension{k}_{n}:String}}] = {{value{k}_{n}:String}}" for n in range(dimensions)
    )
    return f"multiIf(p.cohort IN ('', {{other:String}}), -1, {same}, 1, 0)"
