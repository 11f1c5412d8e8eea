"""`tailbudget top` over a real ClickHouse server, in a terminal of 80 by 24."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from audited_logs import Command
from clickhouse_server import ClickHouseServer
from pages import DOCS, rows
from terminal import shown, wait_for
from textual.binding import Binding
from textual.pilot import Pilot
from textual.widgets import Static

from tailbudget.schemas.audit_rows import AuditCohortRow, AuditRow, AuditStageRow
from tailbudget.schemas.rows import AlertRow
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.top import cells
from tailbudget.streams.top.app import Top
from tailbudget.streams.top.asking import Asking
from tailbudget.streams.top.screens import Alerts, OneService, Overview

SECOND_NS = 10**9
T0_NS = 1_772_445_600 * SECOND_NS
NOW_S = T0_NS / 1e9 + 5
HOSTILE = "[red]a'b\\ \x1b[31m\u202e<b>"
RIGHT_TO_LEFT = "שלום"

STAGES = (
    AuditStageRow("queue", 2000, p50_ms=4.0, p95_ms=90.0, p99_ms=500.0, mean_fast_ms=4.0,
                  mean_slow_ms=320.0, delta_ms=316.0, tail_share_pct=86.0, role="stage"),
    AuditStageRow("[bold]decode", 2000, p50_ms=70.0, delta_ms=None, role="stage"),
)  # fmt: skip
COHORTS = (
    AuditCohortRow("route", "bulk", 400, 900.0, 250.0, 80.0, 20.0),
    AuditCohortRow("cohort", "route=bulk,region=eu", 200, None, None, None, 10.0),
)
CHAT = AuditRow(
    service="chat",
    window_s=60,
    end_ns=T0_NS,
    version=1,
    verdict="breach",
    requests=2000,
    failed=3,
    p50_ms=120.0,
    p95_ms=1480.25,
    p99_ms=None,
    slo_p95_ms=900.0,
    tail_driver="queue",
    stages=STAGES,
    cohorts=COHORTS,
)
CALM = replace(CHAT, service="calm", verdict="ok", p99_ms=80.0, slo_p95_ms=2000.0, stages=())
FEW = replace(CHAT, service="few", verdict="insufficient", requests=30)
OVER = replace(CHAT, service="newly", requests=30)
FREE = replace(CALM, service="free", verdict="insufficient", slo_p95_ms=None)
OLD = replace(CHAT, service=HOSTILE, end_ns=T0_NS - 7200 * SECOND_NS)
FIRING = AlertRow("chat", "p95", T0_NS, "firing", "over", 1480.0, 900.0, "queue", "id", "{}")

Steps = Callable[[Pilot[Any]], Awaitable[None]]


@pytest.fixture
def store(clickhouse_server: ClickHouseServer) -> Iterator[ClickHouse]:
    """A new database on the server."""
    opened = ClickHouse.open(clickhouse_server.target(f"test_{uuid4().hex[:12]}"))
    opened.migrate()
    yield opened
    opened.close()


def settings(store: ClickHouse) -> Settings:
    """Return settings that lead to a store on a server."""
    target = store.target
    found = {
        "port": target.port,
        "username": target.username,
        "password": target.password,
        "database": target.database,
    }
    return Settings.model_validate({"clickhouse": found})


def watch(asking: Asking, steps: Steps, clock: Callable[[], float] = lambda: NOW_S) -> None:
    """Run the application, and these steps in it."""

    async def run() -> None:
        async with Top(asking, clock).run_test(size=(80, 24)) as pilot:
            await steps(pilot)

    try:
        asyncio.run(run())
    finally:
        asking.close()


def line(screen: str, name: str) -> list[str]:
    """Return the words of the line that begins with a name."""
    return next(each.split() for each in screen.splitlines() if each.split()[:1] == [name])


def test_services_are_told_in_words(store: ClickHouse) -> None:
    """The worst stands first; what was not measured, judged or promised says so."""
    store.write_audits([CHAT, CALM, FEW, OVER, FREE])
    store.write_alerts([FIRING])

    async def steps(pilot: Pilot[Any]) -> None:
        screen = await wait_for(pilot, lambda text: "firing" in text and "1,480" in text, "rows")
        said = {words[0]: " ".join(words[1:]) for words in map(str.split, screen.splitlines())}
        assert said["service"] == "status p50 ms p95 ms p99 ms SLO ms n alerts"
        assert said["chat"] == "breach 120 1,480 failed p95 900 2,000 firing"
        assert said["calm"] == "ok 120 1,480 80 p95 2,000 2,000 none"
        assert said["few"] == "too few requests 120 too few too few p95 900 30 none"
        assert said["newly"] == "breach 120 over too few p95 900 30 none"
        assert said["free"] == "no SLO set 120 1,480 80 none 2,000 none"
        services = [name for name in said if name in {"chat", "newly", "calm", "few", "free"}]
        assert services == ["chat", "newly", "calm", "few", "free"]
        assert "last minute" in screen
        assert f"ClickHouse at 127.0.0.1:{store.target.port}" in screen

    watch(Asking(settings(store)), steps)


def test_hostile_names_are_text(store: ClickHouse) -> None:
    """Markup, escapes and signs that turn the writing are shown, also one level down."""
    store.write_audits([OLD, replace(CALM, service=RIGHT_TO_LEFT)])

    async def steps(pilot: Pilot[Any]) -> None:
        screen = await wait_for(pilot, lambda text: "2 h old" in text, "the old service")
        assert "[red]a'b\\ �[31m�<b>" in screen
        assert RIGHT_TO_LEFT in screen
        await pilot.press("enter")
        inside = await wait_for(pilot, lambda text: "[bold]decode" in text, "its stages")
        assert "[red]a'b\\ �[31m�<b>  breach, 2 h old" in inside

    watch(Asking(settings(store)), steps)


def test_keys_lead_down_and_back(store: ClickHouse) -> None:
    """Enter looks into a service, letters change the table, Escape goes back."""
    store.write_audits([CHAT, CALM])
    store.write_alerts([FIRING])

    async def steps(pilot: Pilot[Any]) -> None:
        await wait_for(pilot, lambda text: "1,480" in text, "the services")
        await pilot.press("enter")
        screen = await wait_for(pilot, lambda text: "slow-fast" in text and "316" in text, "stages")
        assert "chat  breach  2,000 requests, 3 failed" in screen
        assert "p95 1,480 of 900" in screen
        assert "tail driver: queue" in screen
        assert line(screen, "queue") == ["queue", "4", "90", "500", "4", "320", "316", "86"]
        assert line(screen, "[bold]decode") == ["[bold]decode", "70", *["unknown"] * 6]
        await pilot.press("c")
        screen = await wait_for(pilot, lambda text: "route=bulk" in text, "cohorts")
        assert line(screen, "route=bulk") == ["route=bulk", "400", "900", "250", "80", "20"]
        assert line(screen, "route=bulk,region=eu")[1:3] == ["200", "unknown"]
        await pilot.press("a")
        screen = await wait_for(pilot, lambda text: "03-02 10:00:00" in text, "alerts")
        assert line(screen, "03-02")[2:7] == ["p95", "firing", "1,480", "900", "queue"]
        await pilot.press("escape")
        await wait_for(pilot, lambda text: "calm" in text, "the services again")
        await pilot.press("a")
        screen = await wait_for(
            pilot, lambda text: "reason" in text and "chat" in text, "all alerts"
        )
        await pilot.press("enter")
        await wait_for(pilot, lambda text: "slow-fast" in text, "the service of the alert")

    watch(Asking(settings(store)), steps)


def test_news_come_under_the_cursor(store: ClickHouse) -> None:
    """A new audit is shown without a key; the cursor stays on its service as others move."""
    store.write_audits([CHAT, CALM])

    async def steps(pilot: Pilot[Any]) -> None:
        await wait_for(pilot, lambda text: "calm" in text, "the services")
        await pilot.press("down")
        later = T0_NS + 2 * SECOND_NS
        first = replace(CHAT, service="aaa", p50_ms=111.0)
        store.write_audits([replace(CALM, end_ns=later, p50_ms=222.0), first])
        screen = await wait_for(pilot, lambda text: "222" in text and "111" in text, "the news")
        assert line(screen, "calm")[2] == "222"
        await pilot.press("enter")
        await wait_for(pilot, lambda text: "calm  ok" in text, "the chosen service")

    watch(Asking(settings(store)), steps)


def test_the_window_can_be_changed(store: ClickHouse) -> None:
    """`w` goes to the longer windows and round again; a service without one is not there."""
    store.write_audits([CHAT, replace(CHAT, window_s=300, p50_ms=333.0)])

    async def steps(pilot: Pilot[Any]) -> None:
        await wait_for(pilot, lambda text: "120" in text, "the minute")
        await pilot.press("w")
        await wait_for(pilot, lambda text: "last 5 minutes" in text and "333" in text, "5 minutes")
        await pilot.press("w")
        await wait_for(
            pilot, lambda text: "last hour" in text and "no service has sent" in text, "the hour"
        )
        await pilot.press("w")
        await wait_for(pilot, lambda text: "last minute" in text and "120" in text, "the minute")

    watch(Asking(settings(store)), steps)


def test_an_empty_database_says_so(store: ClickHouse) -> None:
    """Without services there is a sentence, and Enter on it does nothing."""

    async def steps(pilot: Pilot[Any]) -> None:
        await wait_for(pilot, lambda text: "no service has sent anything yet" in text, "it")
        await pilot.press("enter")
        await wait_for(pilot, lambda text: "last minute" in text, "the same screen")

    watch(Asking(settings(store)), steps)


def test_an_outage_is_told_and_ends(tmp_path: Path) -> None:
    """What is shown stays, with its age and what to do, until ClickHouse answers again."""
    now = [NOW_S]
    with ClickHouseServer(tmp_path / "server") as server:
        store = ClickHouse.open(server.target("outage"))
        store.migrate()
        store.write_audits([CHAT])

        async def steps(pilot: Pilot[Any]) -> None:
            await wait_for(pilot, lambda text: "chat" in text, "the service")
            server.stop()
            now[0] += 7
            screen = await wait_for(pilot, lambda text: "clickhouse.host" in text, "the outage")
            assert "not reachable" in screen
            assert "below is what was" in screen
            assert "clickhouse.host" in screen
            assert "chat" in screen
            server.start()
            screen = await wait_for(pilot, lambda text: "not reachable" not in text, "the end")
            assert "last minute" in str(pilot.app.screen.query_one("#state", Static).render())

        watch(Asking(settings(store)), steps, lambda: now[0])
        store.close()


def test_a_refusal_is_no_outage(store: ClickHouse) -> None:
    """A database without our tables is told as one, with what to look at."""
    wrong = settings(store)
    clickhouse = wrong.clickhouse.model_copy(update={"database": "default"})

    async def steps(pilot: Pilot[Any]) -> None:
        screen = await wait_for(pilot, lambda text: "refused: " in text, "the refusal")
        assert "not reachable" not in screen
        assert "alerts_open" in screen

    watch(Asking(wrong.model_copy(update={"clickhouse": clickhouse})), steps)


def test_odd_names_are_lines_of_their_own(store: ClickHouse) -> None:
    """Names that differ in where a line ends are two cohorts, and an alert leads to its service."""
    odd = tuple(
        AuditCohortRow(dimension, value, 400, 900.0, 250.0, 80.0, 20.0)
        for dimension, value in (("a\nb", "c"), ("a", "b\nc"))
    )
    store.write_audits([replace(CHAT, service="two\nlines", cohorts=odd)])
    store.write_alerts([replace(FIRING, service="two\nlines", alert="slo:\n")])

    async def steps(pilot: Pilot[Any]) -> None:
        await wait_for(pilot, lambda text: "two lines" in text, "the service")
        await pilot.press("a")
        await wait_for(pilot, lambda text: "slo:" in text, "its alert")
        await pilot.press("enter")
        await wait_for(pilot, lambda text: "two lines  breach" in text, "the service")
        await pilot.press("c")
        await wait_for(pilot, lambda text: "a b=c" in text and "a=b c" in text, "both cohorts")

    watch(Asking(settings(store)), steps)


def test_quit_ends_it(store: ClickHouse) -> None:
    """`q` ends the application with status 0."""

    async def run() -> int | None:
        app = Top(Asking(settings(store)))
        async with app.run_test() as pilot:
            await pilot.press("q")
        return app.return_code

    assert asyncio.run(run()) == 0


def test_shown_reads_the_screen(store: ClickHouse) -> None:
    """The support function gives the keys of the last line, each once."""

    async def steps(pilot: Pilot[Any]) -> None:
        await wait_for(pilot, lambda text: "Quit" in text, "the keys")
        assert shown(pilot.app).count("Read now") == 1

    watch(Asking(settings(store)), steps)


def test_a_pipe_is_refused(tailbudget: Command) -> None:
    """Where there is no terminal it says what to use instead."""
    answer = tailbudget("top")
    assert answer.status == 2
    assert "needs a terminal" in answer.err
    assert "tailbudget sql" in answer.err


def test_the_page_has_the_keys_and_the_words() -> None:
    """docs/top.md names every key that a screen takes, and every word that stands for a figure."""
    table = rows(DOCS / "top.md", "| Key | What it does |")
    named = {key for row in table for key in re.findall(r"`(\w)`", row[0])}
    screens = (Top, Overview, OneService, Alerts)
    bound = {one.key for each in screens for one in Binding.make_bindings(each.BINDINGS)}
    assert named == bound - {"escape"}
    said = [row[0] for row in rows(DOCS / "top.md", "| Words | Meaning |")]
    for word in (cells.TOO_FEW, cells.OVER, cells.FAILED, cells.NOT_MEASURED):
        assert word in said
    verdicts = {word for words in said[:2] for word in words.split(", ")}
    assert verdicts == {word for word, _ in cells.SAID.values()}
    assert "no SLO set" in said
