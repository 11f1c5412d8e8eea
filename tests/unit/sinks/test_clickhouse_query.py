"""SQL for people: reading, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from clickhouse_store import fresh_store

from tailbudget.schemas.errors import ConfigError
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.statement import reading_statement

WRITES = [
    "INSERT INTO audits (service) VALUES ('x')",
    "DROP TABLE panes",
    "ALTER TABLE panes DELETE WHERE 1",
    "TRUNCATE TABLE panes",
    "CREATE TABLE t (x UInt8) ENGINE = Memory",
    "SET readonly = 0",
    "USE default",
    "SYSTEM SHUTDOWN",
    "KILL QUERY WHERE 1",
    "OPTIMIZE TABLE panes FINAL",
    "GRANT ALL ON *.* TO default",
    "BACKUP TABLE panes TO File('x')",
    "ATTACH TABLE t",
    "",
    " -- nothing\n;",
]
TRICKS = [
    "SELECT 1; DROP TABLE panes",
    "SELECT 1;;",
    "/* SELECT */ DROP TABLE panes",
    "SELECT 1 INTO OUTFILE 'here.txt'",
    "SELECT 1 INTO/**/OUTFILE 'here.txt'",
    "select * from Python('x')",
    "SELECT * FROM `Python` (x)",
    'SELECT * FROM "PYTHON"(x)',
    "SELECT 1 FORMAT CSV",
    "SELECT 'unclosed",
    "SELECT 1 /* unclosed",
    "SELECT `unclosed",
]
ENGINE_REFUSES = [
    "SELECT * FROM file('/etc/hostname', 'LineAsString')",
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
    "SELECT * FROM remote('127.0.0.1', 'system.one')",
    "SELECT 1 SETTINGS readonly = 0",
    "WITH 1 AS x INSERT INTO audits (service) SELECT 'x'",
]
READS = [
    "SELECT 1;",
    "  select 'a;b' -- a comment; with a semicolon",
    "WITH 1 AS x SELECT x",
    "(SELECT 1) UNION ALL (SELECT 2)",
    "SHOW TABLES",
    "DESCRIBE panes",
    "EXPLAIN SELECT 1",
    "EXISTS TABLE panes",
    "SELECT 1 AS format",
    "SELECT formatDateTime(now(), '%Y'), format('{}', 'x')",
    "SELECT 'into outfile', \"x\" FROM (SELECT 'it''s; \\' fine' AS x)",
    "SELECT $$heredoc; 'with' all$$",
    "SELECT 'drop', count() FROM panes /* drop */",
]


@pytest.fixture(scope="module")
def clickhouse(clickhouse_path: Path) -> Iterator[ClickHouse]:
    """One database for all: nothing here changes it."""
    with fresh_store(clickhouse_path) as store:
        yield store


@pytest.mark.parametrize("sql", WRITES + TRICKS)
def test_what_may_do_more_than_read_is_refused_before_it_is_sent(sql: str) -> None:
    """Writing, several statements, files, processes: refused with what to write instead."""
    with pytest.raises(ConfigError) as caught:
        reading_statement(sql)
    assert caught.value.remedy


@pytest.mark.parametrize("sql", ENGINE_REFUSES)
def test_the_connection_itself_is_read_only(clickhouse: ClickHouse, sql: str) -> None:
    """What passes for reading is still refused where it reaches beyond the tables."""
    with pytest.raises(ConfigError):
        clickhouse.query(sql)
    assert clickhouse.query("SELECT count() FROM audits").rows == ((0,),)


@pytest.mark.parametrize("sql", READS)
def test_reading_is_allowed(clickhouse: ClickHouse, sql: str) -> None:
    """Quotes, comments and names that look dangerous are not."""
    assert clickhouse.query(sql).columns


def test_an_answer_fits_json(clickhouse: ClickHouse) -> None:
    """Large integers stay whole, times are text in UTC, NaN and infinity are null."""
    answer = clickhouse.query(
        "SELECT 18446744073709551615 AS big, nan AS no, -inf AS low, NULL AS nothing,"
        " toDateTime('2026-03-02 10:00:00', 'UTC') AS at, map('a', [1, 2]) AS nested, 'ü' AS text"
    )
    assert answer.columns == ("big", "no", "low", "nothing", "at", "nested", "text")
    row = (2**64 - 1, None, None, None, "2026-03-02 10:00:00", {"a": [1, 2]}, "ü")
    assert answer.rows == (row,)
    assert answer.types[0] == "UInt64"
    assert json.loads(json.dumps(answer.records(), allow_nan=False))[0]["big"] == 2**64 - 1


def test_an_answer_is_bounded_and_says_so(clickhouse: ClickHouse) -> None:
    """The first rows come, and the reader is told that there were more."""
    answer = clickhouse.query("SELECT number FROM numbers(1000)", max_rows=10)
    assert answer.rows == tuple((number,) for number in range(10))
    assert answer.truncated
    exact = clickhouse.query("SELECT number FROM numbers(10)", max_rows=10)
    assert (len(exact.rows), exact.truncated) == (10, False)
    many = clickhouse.query("SELECT number FROM numbers(10000000)", max_rows=10_000_000)
    assert (len(many.rows), many.truncated) == (100_000, True)


def test_parameters_are_values_not_text(clickhouse: ClickHouse) -> None:
    """What a caller passes is never read as SQL."""
    awkward = "x'; DROP TABLE panes; --\\"
    answer = clickhouse.query("SELECT {name:String} AS name", {"name": awkward})
    assert answer.rows == ((awkward,),)


def test_a_wrong_statement_says_what_is_wrong(clickhouse: ClickHouse) -> None:
    """ClickHouse's own words, and where queries that work are."""
    with pytest.raises(ConfigError, match="no_such_column") as caught:
        clickhouse.query("SELECT no_such_column FROM panes")
    assert "docs/sql.md" in caught.value.remedy


def test_a_query_that_takes_too_much_is_stopped(clickhouse: ClickHouse) -> None:
    """Memory is bounded, and the reader is told to ask for less."""
    with pytest.raises(ConfigError, match="memory limit") as caught:
        clickhouse.query("SELECT length(groupArray(toString(number))) FROM numbers(100000000)")
    assert "shorter time range" in caught.value.remedy


def test_no_file_appears(clickhouse: ClickHouse, tmp_path: Path) -> None:
    """INTO OUTFILE would be written by this very process."""
    wanted = tmp_path / "out.csv"
    with pytest.raises(ConfigError):
        clickhouse.query(f"SELECT 1 INTO OUTFILE '{wanted}' FORMAT CSV")
    assert not wanted.exists()


def test_now_is_utc_wherever_the_machine_stands(clickhouse: ClickHouse) -> None:
    """A view's argument `now()` is read as UTC."""
    assert clickhouse.query("SELECT timezone()").rows == (("UTC",),)
