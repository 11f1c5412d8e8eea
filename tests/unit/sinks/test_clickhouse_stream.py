"""Long answers in blocks, over both interfaces of ClickHouse."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tailbudget.schemas.errors import ConfigError
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.query import MAX_ROWS
from tailbudget.sinks.clickhouse.stream import stream


def test_answers_are_longer_than_a_query_of_a_person(clickhouse: ClickHouse) -> None:
    """All rows come, in several blocks, and in their order."""
    batches = list(stream(clickhouse.target, f"SELECT number FROM numbers({3 * MAX_ROWS})"))
    assert len(batches) > 1
    values = [value for batch in batches for value in batch.column(0).to_pylist()]
    assert values == list(range(3 * MAX_ROWS))


def test_values_have_their_types(clickhouse: ClickHouse) -> None:
    """Text is bytes, low cardinality too; times carry their zone; null is null."""
    sql = (
        "SELECT 'é' AS text, toLowCardinality('a') AS low,"
        " toDateTime64(1772445600.5, 3, 'UTC') AS t,"
        " CAST(NULL, 'Nullable(Float64)') AS nothing;"
    )
    (batch,) = stream(clickhouse.target, sql)
    at = datetime(2026, 3, 2, 10, 0, 0, 500_000, tzinfo=UTC)
    assert batch.to_pylist() == [{"text": "é".encode(), "low": b"a", "t": at, "nothing": None}]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE panes",
        "INSERT INTO panes VALUES (1)",
        "SELECT 1 SETTINGS readonly = 0",
        "SELECT nothing FROM panes",
        "SELECT 1 FORMAT CSV",
        "SELECT",
    ],
)
def test_anything_but_reading_is_refused(clickhouse: ClickHouse, sql: str) -> None:
    """A statement that writes, changes settings or is wrong is an error of usage."""
    with pytest.raises(ConfigError) as error:
        list(stream(clickhouse.target, sql))
    assert error.value.remedy
