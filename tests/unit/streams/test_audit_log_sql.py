"""Requests out of ClickHouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from clickhouse_store import fresh_store
from logs import NOW_NS, Read, cells, records, write

from tailbudget.schemas import refusals
from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.errors import ConfigError, Refused
from tailbudget.streams.audit_log import Progress, open_log, open_sql

QUERY = r"""
SELECT JSONExtractString(line, 'request_id') AS request_id,
       parseDateTime64BestEffort(JSONExtractString(line, 'timestamp'), 3, 'UTC') AS timestamp,
       JSONExtract(line, 'status', 'Nullable(String)') AS status,
       JSONExtract(line, 'total_ms', 'Nullable(Float64)') AS total_ms,
       JSONExtract(line, 'timeout_ms', 'Nullable(Float64)') AS timeout_ms,
       JSONExtract(line, 'queue_ms', 'Nullable(Float64)') AS queue_ms,
       JSONExtract(line, 'run_ms', 'Nullable(Float64)') AS run_ms,
       JSONExtract(line, 'input_tokens', 'UInt32') AS input_tokens,
       JSONExtract(line, 'route', 'LowCardinality(String)') AS route,
       JSONExtract(line, 'region', 'Nullable(String)') AS region,
       JSONExtract(line, 'cache_hit', 'Bool') AS cache_hit,
       JSONExtractString(line, 'pod') AS pod,
       JSONExtractString(line, 'note') AS note
FROM (SELECT arrayJoin(splitByChar('\n', '{text}')) AS line)
"""


@pytest.fixture
def target(clickhouse_path: Path) -> ClickHouseTarget:
    with fresh_store(clickhouse_path) as store:
        return store.target


def test_rows_of_a_query_are_those_of_a_file(tmp_path: Path, target: ClickHouseTarget) -> None:
    """Typed columns of ClickHouse are decoded to the same as the JSON lines they came from."""
    path = write(tmp_path, records(300), "jsonl")
    expected = Read(open_log(path, now_ns=NOW_NS))
    told: list[Progress] = []
    query = QUERY.replace("{text}", path.read_text(encoding="utf-8").strip())
    reading = open_sql(target, query, progress=told.append, now_ns=NOW_NS)
    assert reading.found.format == "sql"
    log = Read(reading)
    assert cells(log.only) == cells(expected.only)
    assert log.ledger == expected.ledger
    assert (told[-1].rows, told[-1].share) == (300, None)
    assert reading.where(7) == "the query, row 8"


def test_what_a_query_cannot_be(target: ClickHouseTarget) -> None:
    """It reads; it has rows; and they are requests."""
    with pytest.raises(ConfigError):
        open_sql(target, "DROP TABLE panes", now_ns=NOW_NS)
    with pytest.raises(Refused) as error:
        open_sql(target, "SELECT 1 AS total_ms WHERE 0", now_ns=NOW_NS)
    assert error.value.reason == refusals.NO_ROWS
    with pytest.raises(Refused) as error:
        open_sql(target, "SELECT 1 AS p50, 2 AS p95, 3 AS p99", now_ns=NOW_NS)
    assert error.value.reason == refusals.AGGREGATES


def test_uuids_are_text(target: ClickHouseTarget) -> None:
    """An id of the type UUID is what ClickHouse shows of it; other bytes are hexadecimal."""
    known = "61f0c404-5cb3-11e7-907b-a6006ad3dba0"
    query = (
        f"SELECT toUUID('{known}') AS request_id, 1772445600 AS timestamp, 5.0 AS total_ms,"
        " unhex('FF00') AS region"
    )
    columns = Read(open_sql(target, query, now_ns=NOW_NS)).only
    assert list(columns.ids) == [known]
    assert columns.cohorts == ((("region", "ff00"),),)
