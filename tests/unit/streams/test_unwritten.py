"""What could not be written waits for the next flush, of every kind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from clickhouse_server import ClickHouseServer
from clickhouse_store import fresh_store

from tailbudget.schemas.budgets import BudgetRow
from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.unwritten import Unwritten

ROW = BudgetRow(
    service="chat",
    objective="fast",
    at_ns=1_772_445_600_000_000_000,
    total=1000,
    bad=2,
    target_pct=99.0,
    left_pct=80.0,
    corrected_pct=None,
    burn_rate=0.2,
    exhausted_ns=None,
    status="ok",
)


def test_a_refused_row_is_written_once_by_the_next_flush(tmp_path: Path) -> None:
    """ClickHouse refuses budgets for good: they wait, and come behind no newer one."""
    with ClickHouseServer(tmp_path / "clickhouse") as server, fresh_store(server.target()) as store:
        waiting = Unwritten(store)
        waiting.budgets.append(ROW)
        waiting.size = 100
        server.fail_inserts([(403, 497)], table="budgets")  # ACCESS_DENIED
        with pytest.raises(ConfigError, match="497"):
            asyncio.run(waiting.write([]))
        assert (waiting.budgets, waiting.size) == ([ROW], 100)
        waiting.budgets.append(replace(ROW, at_ns=ROW.at_ns + 10_000_000_000, bad=3))
        asyncio.run(waiting.write([]))
        assert (waiting.budgets, waiting.size) == ([], 0)
        assert store.query("SELECT bad FROM budgets ORDER BY at").rows == ((2,), (3,))
