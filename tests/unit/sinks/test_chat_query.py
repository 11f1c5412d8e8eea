"""The query in an alert's message, run on the embedded ClickHouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailbudget.sinks.chat_text import query_text
from tailbudget.sinks.clickhouse import ClickHouse, ClickHouseTarget


@pytest.mark.parametrize("service", ["chat", "it's \\ <b>", "two\nlines ```\x1b[0m"])
def test_the_query_runs(service: str, tmp_path: Path) -> None:
    """Copied from the message, it runs as it is, and has the columns that tell a breach."""
    database = ClickHouse.open(ClickHouseTarget(interface="chdb", path=tmp_path / "clickhouse"))
    try:
        database.migrate()
        for since_ns in (None, 1_772_445_600 * 10**9):
            answer = database.query(query_text(service, since_ns))
            assert answer.columns == ("start", "requests", "failed", "p50_ms", "p95_ms", "p99_ms")
            assert answer.rows == ()
            literal = query_text(service, since_ns).split("service = ")[1].split(" AND stage")[0]
            assert database.query(f"SELECT {literal}").rows == ((service,),)
    finally:
        database.close()
