"""Full reports of rolling windows: drawn once, later when they were missed, and beside the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from clickhouse_server import ClickHouseServer
from clickhouse_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from past import PastService
from random_records import SECOND_NS, T0_NS, random_columns

from tailbudget.schemas.audit_rows import FULL
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.report.json_report import as_json
from tailbudget.streams.audit_rows import audit_row
from tailbudget.streams.history import Span
from tailbudget.streams.rolling_reports import EVERY_S, MOST_BEHIND, RollingReports, due
from tailbudget.streams.service_report import Past, service_report

SETTINGS = Settings.model_validate({"services": {"chat": {"slo": {"p95_ms": 250.0}}}})
HALF_HOUR_NS = 1_800 * SECOND_NS
SETTLED_NS = T0_NS + HALF_HOUR_NS


@pytest.fixture
def past(clickhouse_path: Path) -> Iterator[PastService]:
    """A service of half an hour."""
    with fresh_store(clickhouse_path) as store:
        service = PastService(store, "chat")
        service.write(random_columns(1, 900, span_s=1_800, routes=("chat", "bulk")))
        yield service


def draw(store: ClickHouse, settled_ns: int = SETTLED_NS) -> RollingReports:
    """Draw what is due, as a worker does that was just started."""
    reports = RollingReports(SETTINGS, store, lambda: {"chat": settled_ns})
    asyncio.run(reports.draw())
    return reports


def ends(store: ClickHouse, window_s: int) -> list[int]:
    """Return where the full reports of a window end, seconds after the start of the data."""
    sql = (
        "SELECT toUnixTimestamp64Milli(end) FROM audits FINAL"
        " WHERE window_s = {window:UInt32} AND version >= {full:UInt64} ORDER BY end"
    )
    rows = store.query(sql, {"window": window_s, "full": FULL}).rows
    return [(int(ms) * 1_000_000 - T0_NS) // SECOND_NS for (ms,) in rows]


@given(
    settled_s=st.integers(0, 10**7),
    done=st.dictionaries(st.sampled_from(sorted(EVERY_S)), st.integers(0, 40), max_size=3),
)
def test_what_is_due_is_settled_and_not_done(settled_s: int, done: dict[int, int]) -> None:
    """Each end after the last report up to now, at most so many, in order."""
    newest = {w: settled_s // every * every for w, every in EVERY_S.items()}
    drawn = {w: (newest[w] - behind * EVERY_S[w]) * SECOND_NS for w, behind in done.items()}
    found = due(drawn, settled_s * SECOND_NS)
    assert found == sorted(found, key=lambda one: (one[1], one[0]))
    for window_s, every_s in EVERY_S.items():
        mine = [end_ns // SECOND_NS for w, end_ns in found if w == window_s]
        behind = min(done.get(window_s, MOST_BEHIND), MOST_BEHIND)
        assert mine == [newest[window_s] - every_s * at for at in range(behind)][::-1]


def test_a_report_is_there_with_all_its_parts(past: PastService) -> None:
    """Its JSON is that of the `report` command, and each table has its rows."""
    assert draw(past.store).failed == 0
    assert ends(past.store, 300) == [300, 600, 900, 1_200, 1_500, 1_800]
    # Windows of an hour that begin before the data count, too.
    assert ends(past.store, 3_600) == [300, 600, 900, 1_200, 1_500, 1_800]
    payload = past.store.query(
        "SELECT payload FROM audits FINAL WHERE window_s = 3600 ORDER BY end DESC LIMIT 1"
    ).rows[0][0]
    span = Span(SETTLED_NS - 3_600 * SECOND_NS, SETTLED_NS)
    found = service_report(SETTINGS, past.store, Past("chat", span, now_ns=1))
    assert orjson.loads(payload) == orjson.loads(orjson.dumps(as_json(found)))
    report = as_json(found)
    keys = {"audit_stages": "stages", "audit_cohorts": "cohorts", "audit_shape": "shape"}
    keys |= {"audit_causes": "causes", "audit_optimizations": "optimizations"}
    for table, key in keys.items():
        count = past.store.query(
            f"SELECT count() FROM {table} FINAL WHERE window_s = 3600 AND end = "
            "(SELECT max(end) FROM audits WHERE window_s = 3600)"
        ).rows[0][0]
        assert int(count) == len(report[key]), table
    assert report["shape"]
    assert report["causes"]


def test_a_restart_draws_what_was_missed_and_nothing_twice(past: PastService) -> None:
    """A worker that died after 20 minutes: its successor draws the rest, once."""
    first = draw(past.store, T0_NS + 1_200 * SECOND_NS)
    assert first.drawn == 8
    versions = "SELECT window_s, end, version FROM audits ORDER BY window_s, end"
    before = list(past.store.query(versions).rows)
    second = draw(past.store)
    assert second.drawn == 4
    assert draw(past.store).drawn == 0
    assert [row for row in past.store.query(versions).rows if row in before] == before
    assert len(past.store.query(versions).rows) == 12
    assert ends(past.store, 300) == [300, 600, 900, 1_200, 1_500, 1_800]


def test_one_worker_goes_on_as_time_does(past: PastService) -> None:
    """Each look draws what has settled since."""
    settled = {"chat": T0_NS + 300 * SECOND_NS}
    reports = RollingReports(SETTINGS, past.store, lambda: settled)
    counts = []
    for at_s in (300, 599, 600, 1_250):
        settled["chat"] = T0_NS + at_s * SECOND_NS
        asyncio.run(reports.draw())
        counts.append(reports.drawn)
    assert counts == [2, 2, 4, 8]
    assert reports.status() == {"reports_drawn": 8, "reports_failed": 0}


def test_a_service_that_was_away_goes_on_where_its_other_owner_was(past: PastService) -> None:
    """After a partition went and came back, what the other drew is not drawn again."""
    owned = {"chat": T0_NS + 300 * SECOND_NS}
    reports = RollingReports(SETTINGS, past.store, lambda: dict(owned))
    asyncio.run(reports.draw())
    owned.clear()
    asyncio.run(reports.draw())
    assert draw(past.store, T0_NS + 1_500 * SECOND_NS).drawn == 8
    owned["chat"] = SETTLED_NS
    asyncio.run(reports.draw())
    assert reports.drawn == 4


def test_a_live_audit_never_replaces_a_report(past: PastService) -> None:
    """However many requests it counts, whenever it is written; and a report replaces it."""
    span = Span(T0_NS, T0_NS + 300 * SECOND_NS)
    audit = service_report(SETTINGS, past.store, Past("chat", span, now_ns=1))
    live = audit_row(audit, window_s=300, end_ns=span.end_ns)
    past.store.write_audits([live])
    version = "SELECT version FROM audits FINAL WHERE window_s = 300"
    assert past.store.query(version).rows[0][0] == audit.provenance.n
    draw(past.store, span.end_ns)
    drawn = int(past.store.query(version).rows[0][0])
    assert drawn > FULL
    past.store.write_audits([live])
    assert int(past.store.query(version).rows[0][0]) == drawn


def test_parts_of_an_earlier_drawing_are_told_by_their_version(past: PastService) -> None:
    """A report that is drawn anew and has fewer parts leaves the old ones behind its version."""
    span = Span(T0_NS, T0_NS + 300 * SECOND_NS)
    audit = service_report(SETTINGS, past.store, Past("chat", span, now_ns=1))
    rows = [audit_row(audit, window_s=300, end_ns=span.end_ns, drawn_ns=at) for at in (1, 2)]
    past.store.write_audits(rows[:1])
    object.__setattr__(rows[1], "causes", ())
    past.store.write_audits(rows[1:])
    current = (
        "SELECT count() FROM audit_causes FINAL WHERE (service, window_s, end, version) IN"
        " (SELECT service, window_s, end, version FROM audits FINAL)"
    )
    assert past.store.query(current).rows[0][0] == 0
    assert past.store.query("SELECT count() FROM audit_causes FINAL").rows[0][0] > 0


@pytest.mark.thorough
def test_what_clickhouse_did_not_take_is_drawn_the_next_time(tmp_path: Path) -> None:
    """A server that is away loses no report."""
    with ClickHouseServer(tmp_path / "server") as server, fresh_store(server.target()) as store:
        service = PastService(store, "chat")
        service.write(random_columns(1, 300, span_s=600))
        reports = RollingReports(SETTINGS, store, lambda: {"chat": T0_NS + 600 * SECOND_NS})
        server.stop()
        asyncio.run(reports.draw())
        assert (reports.drawn, reports.failed) == (0, 0)
        server.start()
        asyncio.run(reports.draw())
        assert reports.drawn == 4
        assert ends(store, 300) == [300, 600]


@pytest.mark.thorough
def test_a_report_that_cannot_be_drawn_stops_nothing(past: PastService) -> None:
    """It is counted and left out; judging and the other services go on."""
    broken = SETTINGS.model_copy(update={"catalogue": Path("/nowhere/fixes.yaml")})
    reports = RollingReports(broken, past.store, lambda: {"chat": T0_NS + 300 * SECOND_NS})
    asyncio.run(reports.draw())
    assert reports.drawn == 0
    assert reports.failed > 0
    again = reports.failed
    asyncio.run(reports.draw())
    assert reports.failed == again


def test_the_event_loop_goes_on_meanwhile(past: PastService) -> None:
    """While reports are drawn, the loop runs other tasks many times."""

    async def both() -> tuple[RollingReports, int]:
        reports = RollingReports(SETTINGS, past.store, lambda: {"chat": SETTLED_NS})
        drawing = asyncio.create_task(reports.draw())
        rounds = 0
        while not drawing.done():
            await asyncio.sleep(0.001)
            rounds += 1
        await drawing
        return reports, rounds

    reports, rounds = asyncio.run(both())
    assert reports.drawn == 12
    # Drawn on the loop, there would be one round between two reports at most.
    assert rounds > 10 * reports.drawn


def test_an_empty_window_leaves_no_row(past: PastService) -> None:
    """A service that was silent for a day has no reports of that day."""
    reports = draw(past.store, SETTLED_NS + 200_000 * SECOND_NS)
    assert (reports.drawn, reports.failed) == (0, 0)
    assert int(past.store.query("SELECT count() FROM audits").rows[0][0]) == 0
