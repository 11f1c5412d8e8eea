"""Reading back what windows keep of recent panes, merged by ClickHouse.

A full pane (`panes.read_panes`) is for adding records to. Windows want sums only, and of every
stage but the total only those over all cohorts: a small part of a pane, which the server adds up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa

from tailbudget.schemas.errors import ClickHouseError
from tailbudget.schemas.summary import FIXED_STAGES, TOTAL, Summary
from tailbudget.sinks.clickhouse.collapsed import Span, StageTotal, Tables, collapsed
from tailbudget.sinks.clickhouse.connection import Client, Connection

MINUTE_S: Final = 60

_MOST_COHORTS: Final = 50_000
"""Rows of the total that one query reads; a single span with more is still one query."""
_SECOND_NS: Final = 1_000_000_000
_END_S: Final = 2**32 - 1

_HEADERS: Final = """
SELECT toUnixTimestamp(pane) AS start, version, ledger, stages
FROM panes FINAL
WHERE service = {service:String} AND stage = '(pane)' AND panes.pane >= {since:UInt32}
ORDER BY start
"""
_START: Final = f"""toUInt32(if(
    toUnixTimestamp(p.pane) < {{fine:UInt32}},
    intDiv(toUnixTimestamp(p.pane), {MINUTE_S}) * {MINUTE_S},
    toUnixTimestamp(p.pane))) AS start"""
_PANES: Final = """
FROM current_panes AS p
WHERE p.service = {service:String} AND p.pane >= {since:UInt32} AND p.pane < {until:UInt32}"""
_STAGES: Final = f"""
SELECT
    {_START}, p.stage AS stage,
    sum(p.n), sum(p.sum_ns), min(p.min_ms), max(p.max_ms), count(),
    groupUniqArrayArray(p.stages),
    sumMap(p.thresholds_ms, p.over, arrayMap(x -> 1, p.over))
{_PANES}
GROUP BY start, stage
ORDER BY start
"""
_COHORTS: Final = f"""
SELECT
    {_START}, p.cohort AS cohort,
    sum(p.requests) AS requests, sum(p.failed) AS failed,
    sum(p.n) AS n, sum(p.sum_ns) AS sum_ns, min(p.min_ms) AS min_ms, max(p.max_ms) AS max_ms,
    groupArrayArray(p.b) AS b, groupArrayArray(p.c) AS c
{_PANES} AND p.stage = '{TOTAL}'
GROUP BY start, cohort
ORDER BY start, cohort
"""
# Texts as keys of millions of rows are slow: stages and their orders go by number.
_SKETCHES: Final = f"""
SELECT start, number, bucket, sum(count_here) AS count
FROM
(
    SELECT
        {_START},
        toUInt16(indexOf({{stages:Array(String)}}, p.stage) - 1) AS number,
        p.b AS buckets, p.c AS counts
    {_PANES} AND p.stage != '{TOTAL}'
)
ARRAY JOIN buckets AS bucket, counts AS count_here
GROUP BY start, number, bucket
ORDER BY start
"""
_PROFILES: Final = f"""
SELECT start, number, bucket, sum(n_here) AS n, sumForEach(ns_here) AS ns
FROM
(
    SELECT
        {_START},
        toUInt32(indexOf(
            {{orders:Array(Array(String))}}, CAST(p.stages, 'Array(String)')) - 1) AS number,
        p.profile_b AS buckets, p.profile_n AS counts,
        arrayMap(
            row -> arraySlice(p.profile_ns, (row - 1) * length(p.stages) + 1, length(p.stages)),
            arrayEnumerate(p.profile_b)) AS sums
    {_PANES} AND p.stage = '{TOTAL}'
)
ARRAY JOIN buckets AS bucket, counts AS n_here, sums AS ns_here
GROUP BY start, number, bucket
ORDER BY start
"""


@dataclass(frozen=True, slots=True)
class _Headers:
    """What the header rows of panes say.

    Attributes:
        versions: start of the pane in seconds, and its version.
        ledgers: what became of the records of each pane, by its start.
        orders: the distinct lists of stages, in the order in which panes store them.
    """

    versions: list[tuple[int, int]]
    ledgers: list[tuple[int, dict[str, int]]]
    orders: list[list[str]]


class _StageRow(NamedTuple):
    """A row of `_STAGES`; what is not of one stage is in the row of the total only.

    Attributes:
        start_s: start of the span.
        stage: the stage.
        n: as in a summary, like the next three.
        sum_ns: see there.
        min_ms: see there.
        max_ms: see there.
        groups: rows that it adds up: one a pane and cohort.
        stages: all stages of the panes.
        over: thresholds, requests that are bad for each, and groups that counted it.
    """

    start_s: int
    stage: str
    n: int
    sum_ns: int
    min_ms: float
    max_ms: float
    groups: int
    stages: list[str]
    over: tuple[list[float], list[int], list[int]]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Asks for one service's panes from a time on; seconds since the epoch throughout."""

    connection: Connection
    service: str
    since_s: int
    fine_s: int

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a small answer."""
        wanted = self._wanted(self.since_s, _END_S)
        found = self._request(lambda client: client.query(sql, parameters=wanted))
        return [tuple(row) for row in found.result_rows]

    def table(self, sql: str, between_s: tuple[int, int], **more: Any) -> pa.Table:
        """Return an answer about the panes that start in [from, until)."""
        wanted = self._wanted(*between_s) | more
        return self._request(lambda client: client.query_arrow(sql, parameters=wanted))

    def start_s(self, pane_s: int) -> int:
        """Return the start of the span that a pane belongs to."""
        return pane_s if pane_s >= self.fine_s else pane_s // MINUTE_S * MINUTE_S

    def _wanted(self, since_s: int, until_s: int) -> dict[str, Any]:
        return {
            "service": self.service,
            "since": since_s,
            "until": until_s,
            "fine": self.fine_s,
        }

    def _request(self, call: Callable[[Client], Any]) -> Any:
        return self.connection.request(f"reading totals of {self.service}", call)


def recent_totals(
    connection: Connection, service: str, since_ns: int, fine_ns: int
) -> list[Summary]:
    """Return the sums of a service's panes from a time on, oldest first, for windows.

    A summary has a group for each cohort, whose total is known and no other stage; the first
    group, the cohort (), also carries the other stages, the exact counts and the tail profile of
    all cohorts. Added to a window, they give the same totals as the panes. Panes that start
    before `fine_ns` come added up to minutes. Both times are rounded down to a minute.

    Raises:
        ClickHouseError: it may work later; also when panes were written meanwhile.
    """
    reader = _Reader(connection, service, _minute_s(since_ns), _minute_s(fine_ns))
    headers = _headers(reader)
    spans = _spans(reader, headers)
    return [summary for part in _parts(spans) for summary in _summaries(reader, headers, part)]


def _headers(reader: _Reader) -> _Headers:
    rows = reader.rows(_HEADERS)
    return _Headers(
        versions=[(start_s, version) for start_s, version, _, _ in rows],
        ledgers=[(start_s, dict(ledger)) for start_s, _, ledger, _ in rows],
        orders=[list(order) for order in sorted({tuple(stages) for *_, stages in rows})],
    )


def _spans(reader: _Reader, headers: _Headers) -> list[Span]:
    """Return what is known of each span without its sketches, oldest first."""
    ledgers: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for pane_s, ledger in headers.ledgers:
        ledgers[reader.start_s(pane_s)].update(ledger)
    stages: defaultdict[int, list[_StageRow]] = defaultdict(list)
    for row in map(_StageRow._make, reader.rows(_STAGES)):
        stages[row.start_s].append(row)
    starts = sorted(ledgers.keys() | stages.keys())
    return [_span(start_s, stages[start_s], ledgers[start_s]) for start_s in starts]


def _span(start_s: int, rows: list[_StageRow], ledger: Counter[str]) -> Span:
    totals = [row for row in rows if row.stage == TOTAL]
    own = {stage for row in totals for stage in row.stages} - set(FIXED_STAGES)
    return Span(
        start_s=start_s,
        stages=(*FIXED_STAGES, *sorted(own)),
        of_stage={r.stage: StageTotal(r.n, r.sum_ns, r.min_ms, r.max_ms) for r in rows},
        # A threshold counts if all did: how many requests of the others are slower is not known.
        over={
            at: count
            for row in totals
            for at, count, had_it in zip(*row.over, strict=True)
            if had_it == row.groups
        },
        ledger=dict(ledger),
        groups=sum(row.groups for row in totals),
    )


def _parts(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """Cut spans into runs of at most `_MOST_COHORTS` groups, or one span."""
    part: list[Span] = []
    groups = 0
    for span in spans:
        if part and groups + span.groups > _MOST_COHORTS:
            yield part
            part, groups = [], 0
        part.append(span)
        groups += span.groups
    if part:
        yield part


def _summaries(reader: _Reader, headers: _Headers, spans: list[Span]) -> Iterator[Summary]:
    tables = _tables(reader, headers, spans)
    # Several answers describe one state only if nobody wrote between them.
    if _headers(reader).versions != headers.versions:
        raise ClickHouseError(f"panes of {reader.service} were written while they were read")
    return collapsed(reader.service, spans, tables)


def _tables(reader: _Reader, headers: _Headers, spans: list[Span]) -> Tables:
    last_s = spans[-1].start_s
    length_s = MINUTE_S if last_s < reader.fine_s else 1
    between_s = (spans[0].start_s, last_s + length_s)
    stages = sorted({stage for order in headers.orders for stage in order})
    return Tables(
        stages=stages,
        orders=headers.orders,
        cohorts=reader.table(_COHORTS, between_s),
        sketches=reader.table(_SKETCHES, between_s, stages=stages),
        profiles=reader.table(_PROFILES, between_s, orders=headers.orders),
    )


def _minute_s(time_ns: int) -> int:
    return max(time_ns // _SECOND_NS // MINUTE_S * MINUTE_S, 0)
