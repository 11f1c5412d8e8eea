"""How long a report over months takes, with and without rollups, beside counting the same rows.

A day of panes is drawn from a seed, written, and copied by SQL to the days before it, so that the
days are alike; the report does not know.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from random_records import SECOND_NS, random_columns

from tailbudget.models.select import split_panes
from tailbudget.models.summarise import summarise
from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.history import Span
from tailbudget.streams.rendering import render
from tailbudget.streams.service_report import Past, service_report

DAY_S = 86_400
MIDNIGHT_S = 1_772_409_600  # 2026-03-02
PANE_S = 60
STAGES = ("decode", "network", "postprocess", "prefill", "queue", "tokenize")
COUNT = "SELECT count(), sum(n) FROM panes WHERE service = 'chat'"
COPY = """
INSERT INTO panes SELECT * REPLACE (
    pane - {shift} AS pane,
    arrayMap(at -> at - {shift} * 1000000000, sample_ts_ns) AS sample_ts_ns
) FROM (SELECT * FROM panes WHERE service = 'chat' AND pane >= {midnight})
"""
SETTINGS = Settings.model_validate({"services": {"chat": {"slo": {"p95_ms": 400, "p99_ms": 900}}}})


def day(seed: int, every_s: int, cohorts: int, requests: int) -> list[StoredPane]:
    """Return the panes of the last day, one every so many seconds, of so many requests each."""
    routes = [f"route-{number}" for number in range(cohorts // 2)]
    panes = []
    for number, start_s in enumerate(range(MIDNIGHT_S, MIDNIGHT_S + DAY_S, every_s)):
        columns = random_columns(seed + number, requests, stages=STAGES, routes=routes)
        inside = start_s * SECOND_NS + columns.ts_ns % (PANE_S * SECOND_NS)
        columns = replace(columns, ts_ns=inside, ids=[f"{number}-{one}" for one in columns.ids])
        summary = summarise(columns, pane_ns=PANE_S * SECOND_NS, thresholds_ms=(400.0, 900.0))
        for pane_ns, part in split_panes(summary).items():
            panes.append(StoredPane(pane_ns, PANE_S, part, {"requests:0:1": number}, 1))
    return panes


def _command(client: Any, sql: str) -> None:
    client.command(sql)


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Return seconds by the clock and CPU seconds of a call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Write the panes, draw the reports, and print how long each took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--every", type=int, default=60, help="seconds from pane to pane")
    parser.add_argument("--cohorts", type=int, default=30)
    parser.add_argument("--requests", type=int, default=120, help="of a pane")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = ClickHouse.open(ClickHouseTarget("chdb", path=Path(folder) / "clickhouse"))
        store.migrate()
        store.write_panes(day(1, options.every, options.cohorts, options.requests))
        for back in range(1, options.days):
            shift = back * DAY_S
            sql = COPY.format(shift=shift, midnight=MIDNIGHT_S)
            store._writer.request("copying", partial(_command, sql=sql))
        Console().print(measured(store, options.days))
        store.close()


def measured(store: ClickHouse, days: int) -> Table:
    """Return the table of what was measured."""
    end_ns = (MIDNIGHT_S + DAY_S) * SECOND_NS - 7 * 3_600 * SECOND_NS - 130 * SECOND_NS
    span = Span(end_ns - days * DAY_S * SECOND_NS, end_ns)  # aligned to nothing

    def report() -> object:
        return render(service_report(SETTINGS, store, Past("chat", span, time.time_ns())), "json")

    rows = int(store.query(COUNT).rows[0][0])
    count = min(timed(lambda: store.query(COUNT)) for _ in range(3))
    lines = [("SELECT count(), sum(n)", count), ("report, no rollups", timed(report))]
    lines += [("report again, from rollups", timed(report))]
    size = store.query("SELECT count(), sum(length(payload)) FROM rollups FINAL").rows[0]
    table = Table(title=f"{days} days, {rows:,} rows; {size[0]} rollups, {size[1] / 1e6:.1f} MB")
    for column in ("what", "s", "CPU s", "times the count"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for name, (wall, cpu) in lines:
        table.add_row(name, f"{wall:.2f}", f"{cpu:.2f}", f"{wall / count[0]:,.1f}")
    return table


if __name__ == "__main__":
    main()
