"""Rollups: evidence of longer spans as bytes, and whether it still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tailbudget.sinks.clickhouse.connection import Connection
from tailbudget.sinks.clickhouse.rows import select

_SECOND_NS: Final = 1_000_000_000
_COLUMNS: Final = {
    "service": pa.string(),
    "span_s": pa.uint32(),
    "start": pa.timestamp("s", "UTC"),
    "fingerprint": pa.uint64(),
    "made": pa.timestamp("ms", "UTC"),
    "payload": pa.binary(),
}
_FINGERPRINTS: Final = """
SELECT
    toUInt32(intDiv(toUnixTimestamp(p.pane), {span:UInt32}) * {span:UInt32}) AS start,
    toUnixTimestamp(min(p.pane)), toUnixTimestamp(max(p.pane)), max(p.pane_s), count(),
    groupBitXor(cityHash64(toUnixTimestamp(p.pane), p.version))
FROM panes AS p FINAL
WHERE p.service = {service:String} AND p.stage = '(pane)'
    AND p.pane >= {since:UInt32} AND p.pane < {until:UInt32}
GROUP BY start
ORDER BY start
"""
_MADE: Final = """
SELECT toUnixTimestamp(start) AS at, fingerprint
FROM rollups FINAL
WHERE service = {service:String} AND span_s = {span:UInt32}
    AND rollups.start >= {since:UInt32} AND rollups.start < {until:UInt32}
"""
_STARTS: Final = """
SELECT DISTINCT toUnixTimestamp(p.pane) AS start
FROM panes AS p
WHERE p.service = {service:String} AND p.stage = '(pane)'
    AND p.pane >= {since:UInt32} AND p.pane < {until:UInt32}
ORDER BY start
"""
_PAYLOAD: Final = """
SELECT toUnixTimestamp(start) AS at, payload
FROM rollups FINAL
WHERE service = {service:String} AND span_s = {span:UInt32} AND start IN {starts:Array(UInt32)}
"""
_LAST_S: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of one length in a range.

    Attributes:
        service: the service's name.
        span_s: length of a span.
        since_ns: the range's start.
        until_ns: its end, exclusive.
    """

    service: str
    span_s: int
    since_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True)
class PanesOf:
    """What is known of the panes of one span without reading them.

    Attributes:
        first_ns: start of the first pane.
        last_ns: start of the last.
        pane_s: length of the longest.
        count: how many there are.
        fingerprint: changes whenever one of them is written anew; that of several spans is the
            exclusive or of theirs.
    """

    first_ns: int
    last_ns: int
    pane_s: int
    count: int
    fingerprint: int


@dataclass(frozen=True, slots=True)
class Rollup:
    """One rollup.

    Attributes:
        service: the service's name.
        span_s: length of the span.
        start_ns: its start, event time.
        fingerprint: of what it was merged from.
        made_ns: when.
        payload: the evidence.
    """

    service: str
    span_s: int
    start_ns: int
    fingerprint: int
    made_ns: int
    payload: bytes


def panes_by_span(connection: Connection, spans: Spans) -> dict[int, PanesOf]:
    """Return what panes there are, by the start of their span in nanoseconds."""
    return {
        int(start) * _SECOND_NS: PanesOf(
            int(first) * _SECOND_NS, int(last) * _SECOND_NS, int(pane_s), int(count), int(mark)
        )
        for start, first, last, pane_s, count, mark in _select(connection, _FINGERPRINTS, spans)
    }


def pane_starts(connection: Connection, service: str, since_ns: int, until_ns: int) -> list[int]:
    """Return when the panes that start in a range start, ascending."""
    rows = _select(connection, _STARTS, Spans(service, 1, since_ns, until_ns))
    return [int(start) * _SECOND_NS for (start,) in rows]


def rollups_made(connection: Connection, spans: Spans) -> dict[int, int]:
    """Return the fingerprints of the rollups that there are, by their start."""
    rows = _select(connection, _MADE, spans)
    return {int(start) * _SECOND_NS: int(mark) for start, mark in rows}


def read_rollups(
    connection: Connection, service: str, span_s: int, starts_ns: Sequence[int]
) -> dict[int, bytes]:
    """Return the evidence of those of the spans that were made, by their start."""
    if not starts_ns:
        return {}
    starts_s = [start_ns // _SECOND_NS for start_ns in starts_ns]
    parameters = {"service": service, "span": span_s, "starts": starts_s}
    table = connection.request(
        f"reading rollups of {service}",
        lambda client: client.query_arrow(_PAYLOAD, parameters=parameters, use_strings=False),
    )
    pairs = zip(table["at"].to_pylist(), table["payload"].to_pylist(), strict=True)
    return {int(at) * _SECOND_NS: payload for at, payload in pairs}


def write_rollups(connection: Connection, rollups: Sequence[Rollup]) -> None:
    """Write rollups; a newer one of a span replaces an older one."""
    if not rollups:
        return
    columns: Mapping[str, list[Any]] = {
        "service": [one.service for one in rollups],
        "span_s": [one.span_s for one in rollups],
        "start": [one.start_ns // _SECOND_NS for one in rollups],
        "fingerprint": [one.fingerprint for one in rollups],
        "made": [one.made_ns // 1_000_000 for one in rollups],
        "payload": [one.payload for one in rollups],
    }
    arrays = [pa.array(columns[name], kind) for name, kind in _COLUMNS.items()]
    block = pa.table(arrays, list(_COLUMNS))
    connection.request("writing rollups", lambda client: client.insert_arrow("rollups", block))


def _select(connection: Connection, sql: str, spans: Spans) -> list[tuple[Any, ...]]:
    parameters = {
        "service": spans.service,
        "span": spans.span_s,
        "since": _second(spans.since_ns),
        "until": _second(spans.until_ns),
    }
    return select(connection, sql, parameters, doing=f"looking for panes of {spans.service}")


def _second(time_ns: int) -> int:
    """Return the first whole second from a time on, as far as ClickHouse's DateTime goes."""
    return min(max(-(-time_ns // _SECOND_NS), 0), _LAST_S)
