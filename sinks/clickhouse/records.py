"""Writing and reading rolling audits, alerts, deploys, and the lives of topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any, Final

import pyarrow as pa

from tailbudget.schemas.audit_rows import (
    FULL,
    AuditCauseRow,
    AuditCohortRow,
    AuditOptimizationRow,
    AuditRow,
    AuditShapeRow,
    AuditStageRow,
)
from tailbudget.schemas.rows import AlertRow, DeployRow
from tailbudget.sinks.clickhouse.connection import Connection
from tailbudget.sinks.clickhouse.rows import insert, select

_TEXT: Final = pa.string()
_NUMBER: Final = pa.float64()
_COUNT: Final = pa.uint64()
_AT: Final = pa.timestamp("ns", "UTC")
_END: Final = pa.timestamp("ms", "UTC")
_MS: Final = 1_000_000

_AUDIT_KEY: Final = {"service": _TEXT, "window_s": pa.uint32(), "end": _END, "version": _COUNT}
_AUDITS: Final = _AUDIT_KEY | {
    "verdict": _TEXT,
    "requests": _COUNT,
    "failed": _COUNT,
    **dict.fromkeys(("p50_ms", "p95_ms", "p99_ms", "max_ms"), _NUMBER),
    **dict.fromkeys(("slo_p50_ms", "slo_p95_ms", "slo_p99_ms"), _NUMBER),
    "tail_driver": _TEXT,
    "payload": _TEXT,
}
_TEXTS: Final = pa.list_(_TEXT)
_KINDS: Final = {"n": _COUNT, "tail_only": pa.bool_(), "reversible": pa.bool_()}
_TEXT_COLUMNS: Final = frozenset(
    {
        *("stage", "role", "dimension", "value", "cohort", "covariate"),
        *("cause", "fix", "text", "quality_risk", "horizon"),
    }
)
_PARTS: Final = (
    ("audit_stages", "stages", AuditStageRow),
    ("audit_cohorts", "cohorts", AuditCohortRow),
    ("audit_shape", "shape", AuditShapeRow),
    ("audit_causes", "causes", AuditCauseRow),
    ("audit_optimizations", "optimizations", AuditOptimizationRow),
)
"""Table, field of `AuditRow`, kind of its rows."""
_ALERTS: Final = {
    "service": _TEXT,
    "alert": _TEXT,
    "at": _AT,
    "state": _TEXT,
    "reason": _TEXT,
    "measured_ms": _NUMBER,
    "slo_ms": _NUMBER,
    "tail_driver": _TEXT,
    "alert_id": _TEXT,
    "payload": _TEXT,
}
_DEPLOYS: Final = {
    "service": _TEXT,
    "env": _TEXT,
    "version": _TEXT,
    "at": _AT,
    "last": _AT,
    "kind": _TEXT,
}
_RECENT: Final = """
SELECT service, env, version, toUnixTimestamp64Nano(at) AS first, toUnixTimestamp64Nano(last), kind
FROM deploys FINAL
WHERE service IN {services:Array(String)} AND last >= fromUnixTimestamp64Nano({since:Int64})
ORDER BY first, env, version
"""


def write_audits(connection: Connection, audits: Sequence[AuditRow]) -> None:
    """Write audits; the audit itself last, so that one that is there is there with its parts."""
    keys = [(a.service, a.window_s, a.end_ns // _MS, a.version) for a in audits]
    pairs = list(zip(keys, audits, strict=True))
    for table, name, kind in _PARTS:
        columns = _AUDIT_KEY | {field.name: _kind(field.name) for field in fields(kind)}
        rows = ((*key, *astuple(row)) for key, audit in pairs for row in getattr(audit, name))
        insert(connection, table, columns, rows)
    names = list(_AUDITS)[len(_AUDIT_KEY) :]
    whole = ((*key, *(getattr(audit, name) for name in names)) for key, audit in pairs)
    insert(connection, "audits", _AUDITS, whole)


def newest_reports(connection: Connection, service: str) -> dict[int, int]:
    """Return where the newest full report of each length of window ends, nanoseconds."""
    rows = select(
        connection,
        "SELECT window_s, toUnixTimestamp64Milli(max(end)) FROM audits"
        " WHERE service = {service:String} AND version >= {full:UInt64} GROUP BY window_s",
        {"service": service, "full": FULL},
    )
    return {int(window_s): int(end_ms) * _MS for window_s, end_ms in rows}


def write_alerts(connection: Connection, alerts: Sequence[AlertRow]) -> None:
    """Write changes of alerts."""
    insert(connection, "alerts", _ALERTS, (astuple(row) for row in alerts))


def write_deploys(connection: Connection, deploys: Sequence[DeployRow]) -> None:
    """Write deploys; a later announcement of the same deploy replaces the earlier one."""
    insert(connection, "deploys", _DEPLOYS, (astuple(row) for row in deploys))


def recent_deploys(
    connection: Connection, services: Sequence[str], since_ns: int
) -> dict[str, list[DeployRow]]:
    """Return the deploys of services that were last announced at or after a time, in order.

    A service without any is left out.
    """
    found: dict[str, list[DeployRow]] = {}
    for row in select(connection, _RECENT, {"services": list(services), "since": since_ns}):
        found.setdefault(row[0], []).append(DeployRow(*row))
    return found


def incarnation(connection: Connection, topic: str, topic_id: str) -> int:
    """Return the number of this life of a topic: the first is 1, a topic made anew is the next."""
    known = select(
        connection,
        "SELECT minIf(incarnation, topic_id = {topic_id:String}), max(incarnation),"
        " countIf(topic_id = {topic_id:String}) FROM topics WHERE topic = {topic:String}",
        {"topic": topic, "topic_id": topic_id},
    )
    number, newest, count = known[0]
    if count:
        return int(number)
    columns = {"topic": _TEXT, "topic_id": _TEXT, "incarnation": pa.uint32()}
    insert(connection, "topics", columns, [(topic, topic_id, int(newest) + 1)])
    return int(newest) + 1


def _kind(name: str) -> Any:
    """Return the Arrow type of a column of an audit's part."""
    if name in {"evidence", "against", "missing"}:
        return _TEXTS
    return _TEXT if name in _TEXT_COLUMNS else _KINDS.get(name, _NUMBER)
