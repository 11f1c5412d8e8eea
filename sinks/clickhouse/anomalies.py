"""Writing and reading anomalies, shape models, cold windows and signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Final

import pyarrow as pa

from tailbudget.schemas.anomaly_rows import (
    OVER,
    AnomalyRow,
    ColdWindowRow,
    ShapeModelRow,
    SignalRow,
)
from tailbudget.schemas.proposals import CauseName
from tailbudget.sinks.clickhouse.connection import Connection
from tailbudget.sinks.clickhouse.rows import insert, select

_TEXT: Final = pa.string()
_NUMBER: Final = pa.float64()
_NS: Final = pa.timestamp("ns", "UTC")
_MS: Final = pa.timestamp("ms", "UTC")
_ANOMALIES: Final = {
    "service": _TEXT,
    "stage": _TEXT,
    "cohorts": pa.list_(_TEXT),
    "phase": _TEXT,
    "test": _TEXT,
    **dict.fromkeys(("onset", "started_at", "at"), _NS),
    **dict.fromkeys(("effect_pct", "low_pct", "high_pct"), _NUMBER),
    **dict.fromkeys(("effect_ms", "low_ms", "high_ms", "expected_ms", "measured_ms"), _NUMBER),
    "n": pa.uint64(),
    "deploy": _TEXT,
    "cause": _TEXT,
}
_SHAPE_MODELS: Final = {
    **dict.fromkeys(("service", "stage", "cohort"), _TEXT),
    "at": _MS,
    "state": _TEXT,
    "terms": pa.list_(_TEXT),
    "coefficients": pa.list_(_NUMBER),
    **dict.fromkeys(("rows", "r2", "sigma"), _NUMBER),
}
_COLD_WINDOWS: Final = {
    **dict.fromkeys(("service", "version"), _TEXT),
    **dict.fromkeys(("start", "end"), _MS),
    "source": _TEXT,
    "learnt_min": _NUMBER,
}
_SIGNALS: Final = {
    **dict.fromkeys(("service", "instance", "name"), _TEXT),
    "timestamp": _MS,
    "value": _NUMBER,
}
_CAUSES: Final = """
SELECT stage, argMax(cause, (end, -window_s, score))
FROM audit_causes FINAL
WHERE service = {service:String} AND end >= fromUnixTimestamp64Milli({since:Int64})
    AND cause != {inputs:String}
GROUP BY stage
"""
_FITS: Final = """
SELECT stage, argMax(best, end)
FROM
(
    SELECT stage, end, max(r2) AS best
    FROM audit_shape FINAL
    WHERE service = {service:String} AND end >= fromUnixTimestamp64Milli({since:Int64})
    GROUP BY stage, end
    HAVING isNotNull(best)
)
GROUP BY stage
"""
_BETWEEN: Final = """
SELECT
    service, stage, cohorts, phase, test, toUnixTimestamp64Nano(onset),
    toUnixTimestamp64Nano(started_at), toUnixTimestamp64Nano(at), effect_pct, low_pct, high_pct,
    effect_ms, low_ms, high_ms, expected_ms, measured_ms, n, deploy, cause
FROM anomalies FINAL
WHERE service = {service:String} AND started_at < fromUnixTimestamp64Nano({until:Int64})
ORDER BY started_at, stage, at
"""
_SIGNALS_BETWEEN: Final = """
SELECT service, instance, name, toUnixTimestamp64Milli(timestamp), value FROM signals FINAL
WHERE service = {service:String} AND timestamp >= fromUnixTimestamp64Milli({since:Int64})
    AND timestamp < fromUnixTimestamp64Milli({until:Int64})
ORDER BY name, instance, timestamp
"""


def write_anomalies(connection: Connection, rows: Sequence[AnomalyRow]) -> None:
    """Write changes of anomalies; one that is there already is replaced by itself."""
    insert(connection, "anomalies", _ANOMALIES, map(astuple, rows))


def write_shape_models(connection: Connection, rows: Sequence[ShapeModelRow]) -> None:
    """Write shape models as they are."""
    insert(connection, "shape_models", _SHAPE_MODELS, map(astuple, rows))


def write_cold_windows(connection: Connection, rows: Sequence[ColdWindowRow]) -> None:
    """Write cold windows; the newest version of each counts."""
    insert(connection, "cold_windows", _COLD_WINDOWS, map(astuple, rows))


def write_signals(connection: Connection, rows: Sequence[SignalRow]) -> None:
    """Write signals; the same one written again replaces itself."""
    insert(connection, "signals", _SIGNALS, map(astuple, rows))


def newest_causes(connection: Connection, service: str, since_ms: int) -> dict[str, str]:
    """Return the cause that the newest report since a time names for each stage.

    The shape of the input is none: an anomaly is what it does not explain.
    """
    wanted = {"service": service, "since": since_ms, "inputs": CauseName.INPUT_SHAPE}
    return dict(select(connection, _CAUSES, wanted))


def newest_fits(connection: Connection, service: str, since_ms: int) -> dict[str, float]:
    """Return R² of the best covariate of each stage in the newest report since a time."""
    return dict(select(connection, _FITS, {"service": service, "since": since_ms}))


def anomalies_between(
    connection: Connection, service: str, since_ns: int, until_ns: int
) -> list[AnomalyRow]:
    """Return all changes of the anomalies that went on at some moment of a range, in order."""
    rows = [
        replace(AnomalyRow(*row), cohorts=tuple(row[2]))
        for row in select(connection, _BETWEEN, {"service": service, "until": until_ns})
    ]
    over = {
        (row.stage, row.started_ns) for row in rows if row.phase in OVER and row.at_ns < since_ns
    }
    return [row for row in rows if (row.stage, row.started_ns) not in over]


def signals_between(
    connection: Connection, service: str, since_ms: int, until_ms: int
) -> list[SignalRow]:
    """Return the signals of a service in a range, by name, instance and time."""
    rows = select(
        connection, _SIGNALS_BETWEEN, {"service": service, "since": since_ms, "until": until_ms}
    )
    return [SignalRow(*row) for row in rows]
