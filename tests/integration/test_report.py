"""`tailbudget report`: beside a worker, without one, and from a server."""

from __future__ import annotations

import json
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clickhouse_server import ClickHouseServer
from command_line import PATIENCE_S, ended, on_server, run, settings_file, start
from past import PastService
from random_records import SECOND_NS, T0_NS, random_columns

from tailbudget.schemas.rows import DeployRow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.data_directory import running_worker
from tailbudget.streams.embedded import free_port

SINCE = ("--since", "2026-03-02T10:00Z")
SLOS = {"chat": {"slo": {"p95_ms": 250.0}}, "calm": {"slo": {"p50_ms": 9e6}}}


def write(store: ClickHouse) -> None:
    """Write a quarter of an hour of three services, with a deploy."""
    for number, (name, n) in enumerate({"chat": 900, "calm": 900, "few": 3}.items()):
        service = PastService(store, name)
        service.write(random_columns(number, n, span_s=900, routes=("a", "b")))
    at_ns = T0_NS + 400 * SECOND_NS
    store.write_deploys([DeployRow("chat", "prod", "v2", at_ns, at_ns, "deploy")])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with settings, an embedded ClickHouse that nobody owns, and data in it."""
    home = tmp_path_factory.mktemp("report")
    settings_file(home, services=SLOS)
    path = home / "data" / "clickhouse"
    # In a process of its own: this one may have another engine open.
    prelude = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[1] / "support")!r})
from pathlib import Path
from tailbudget.sinks.clickhouse import ClickHouse, ClickHouseTarget
import importlib.util
spec = importlib.util.spec_from_file_location("writing", {__file__!r})
writing = importlib.util.module_from_spec(spec); spec.loader.exec_module(writing)
Path({str(path)!r}).mkdir(parents=True)
store = ClickHouse.open(ClickHouseTarget("chdb", path=Path({str(path)!r})))
store.migrate(); writing.write(store); store.close()
"""
    status, said = run("--help", home=home, prelude=prelude)
    assert status == 0, said
    return home


def report(home: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the status of the command, and its JSON."""
    status, said = run("report", *arguments, *SINCE, "--format", "json", home=home)
    return status, json.loads(said)


def test_exit_statuses(home: Path) -> None:
    """Breach, within the target, and too few; the figures are of what was written."""
    status, chat = report(home, "chat")
    assert (status, chat["verdict"]) == (1, "breach")
    assert chat["provenance"]["n"] == 900
    assert chat["provenance"]["start"] == "2026-03-02T10:00:00.000Z"
    assert chat["cold_start"]["excluded"] > 0
    assert report(home, "calm")[0] == 0
    assert report(home, "few", "--slo", "p99=100")[0] == 4


def test_a_range_of_it(home: Path) -> None:
    """From a time to a time; a range without requests is not enough data."""
    status, part = report(home, "chat", "--until", "2026-03-02T10:05:00Z")
    assert status == 1
    assert 0 < part["provenance"]["n"] < 900
    assert part["provenance"]["end"] == "2026-03-02T10:05:00.000Z"
    status, said = run("report", "chat", "--since", "1h", "--format", "json", home=home)
    assert (status, json.loads(said)["verdict"]) == (4, "no_data")
    days = (datetime.now(UTC) - datetime.fromtimestamp(T0_NS / 1e9, UTC)).days + 2
    status, said = run("report", "chat", "--since", f"{days}d", "--format", "json", home=home)
    assert json.loads(said)["provenance"]["n"] == 900


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("chta",), "nothing was recorded of a service 'chta'"),
        (("chat", "--since", "yesterday"), "'yesterday' is no time"),
        (("chat", "--until", "10 o'clock"), '"10 o\'clock" is no time'),
        (("chat", "--since", "1h", "--until", "2h"), "--since '1h' is not before --until '2h'"),
        (("chat", "--since", "2100-01-01"), "--since '2100-01-01' is not before now"),
        (("chat", "--slow-request-threshold", "p42"), "'p42' is no threshold"),
        (("chat", "--slo", "p99=fast"), "--slo 'p99=fast'"),
    ],
)
def test_wrong_usage_is_one_clear_line(home: Path, arguments: tuple[str, ...], told: str) -> None:
    """What was given, and what to give instead; status 2, and no traceback."""
    status, said = run("report", *arguments, home=home)
    assert status == 2, said
    assert told in said
    assert "remedy: " in said
    assert "Traceback" not in said
    if arguments == ("chta",):
        assert "there are: calm, chat, few" in said


def test_formats_and_files(home: Path, tmp_path: Path) -> None:
    """Text, Markdown and HTML with the SLO proposal and the brief."""
    for format_name, sign in (("text", "chat"), ("markdown", "# "), ("html", "<html")):
        out = tmp_path / f"report.{format_name}"
        more = ("--format", format_name, "--output", str(out), "--advice", "--propose-slo")
        status, said = run("report", "chat", *SINCE, *more, home=home)
        assert status == 1, said
        assert sign in out.read_text()


def test_no_database_is_told(tmp_path: Path) -> None:
    """A directory where nobody ever kept anything."""
    settings_file(tmp_path)
    status, said = run("report", "chat", home=tmp_path)
    assert status == 2
    assert "there is no embedded ClickHouse" in said
    assert not (tmp_path / "data").exists()


def test_from_a_server_and_by_a_user_who_may_only_read(
    home: Path, clickhouse_server: ClickHouseServer, tmp_path: Path
) -> None:
    """The report is the same as that of the embedded engine."""
    clickhouse = on_server(clickhouse_server)
    store = ClickHouse.open(clickhouse_server.target(clickhouse["database"]))
    store.migrate()
    write(store)
    settings_file(tmp_path, clickhouse=clickhouse, services=SLOS)
    expected = report(home, "chat")
    clickhouse_server.fail_inserts([(403, 497)])  # ACCESS_DENIED
    assert report(tmp_path, "chat") == expected
    assert int(store.query("SELECT count() FROM rollups").rows[0][0]) == 0
    assert report(tmp_path, "chat") == expected
    assert int(store.query("SELECT count() FROM rollups").rows[0][0]) > 0
    store.close()


@pytest.mark.parametrize("web", [True, False])
def test_beside_a_worker_that_owns_the_engine(home: Path, bootstrap: str, *, web: bool) -> None:
    """The worker is asked over HTTP, errors included; one that serves none is named."""
    alone = report(home, "chat")
    port = free_port()
    settings_file(
        home, kafka={"bootstrap": bootstrap}, web={"enabled": web, "port": port}, services=SLOS
    )
    worker = start(["worker"], home)
    try:
        deadline = time.monotonic() + PATIENCE_S
        told = "" if web else "which serves no HTTP"
        while running_worker(home / "data") is None:  # else a report takes the engine before it
            assert worker.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        while True:
            status, said = run("report", "chat", *SINCE, "--format", "json", home=home)
            if said.startswith("{") if web else (told in said):  # else it still starts
                break
            assert worker.poll() is None
            assert time.monotonic() < deadline, said
        if web:
            assert (status, json.loads(said)) == alone
            status, said = run("report", "chta", home=home)
            assert status == 2
            assert "there are: calm, chat, few" in said
    finally:
        worker.send_signal(signal.SIGINT)
        ended(worker)
