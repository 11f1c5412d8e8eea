"""`tailbudget sql`: directly, and through the worker that owns the embedded engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from http_serving import serving
from rich.console import Console

from tailbudget.schemas.errors import ClickHouseError, ConfigError
from tailbudget.schemas.settings import Settings
from tailbudget.streams.data_directory import DataDirectory
from tailbudget.streams.database import open_database
from tailbudget.streams.embedded import free_port
from tailbudget.streams.sql import Answer, as_json, as_table, ask, ask_worker, run


@dataclass
class Worker:
    """The SQL port of a worker, which answers what the test says and keeps what it was asked."""

    status: int = 200
    body: bytes = b'{"columns": ["n"], "rows": [[1]]}'
    asked: list[tuple[str, Any]] = field(default_factory=list)
    port: int = 0


@pytest.fixture
def worker() -> Iterator[Worker]:
    """Serve the SQL port of a worker."""
    state = Worker()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append((self.path, sent))
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(state.body)))
            self.end_headers()
            self.wfile.write(state.body)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with serving(Handler) as state.port:
        yield state


def embedded(tmp_path: Path) -> Settings:
    """Return settings of an embedded engine in a new directory."""
    return Settings.model_validate({"clickhouse": {"interface": "chdb"}, "data_dir": tmp_path})


@contextmanager
def owned(settings: Settings, **facts: str | int) -> Iterator[None]:
    """Own the data directory, as a running worker does."""
    with DataDirectory(settings.data_dir) as directory:
        directory.announce(**facts)
        yield


def test_a_running_worker_is_asked(worker: Worker, tmp_path: Path) -> None:
    """While a worker owns the engine, the query goes to its port and not to the files."""
    settings = embedded(tmp_path)
    with owned(settings, host="127.0.0.1", port=worker.port):
        assert ask(settings, "SELECT 1 AS n") == Answer(["n"], [[1]])
    assert worker.asked == [("/sql", {"query": "SELECT 1 AS n"})]
    assert not settings.clickhouse.path.exists()


def test_what_the_worker_refuses_is_told(worker: Worker) -> None:
    """A wrong query comes back with the worker's words and remedy."""
    worker.status = 400
    worker.body = b'{"error": "Unknown column x", "remedy": "DESCRIBE panes"}'
    with pytest.raises(ConfigError, match="Unknown column x") as caught:
        ask_worker({"host": "127.0.0.1", "port": worker.port}, "SELECT x")
    assert caught.value.remedy == "DESCRIBE panes"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"columns": []}', b""])
def test_a_stranger_on_the_port_is_told(worker: Worker, body: bytes) -> None:
    """An answer that is no worker's is not taken for an empty result."""
    worker.body = body
    with pytest.raises(ClickHouseError, match="answers HTTP 200 and no result"):
        ask_worker({"host": "127.0.0.1", "port": worker.port}, "SELECT 1")


def test_a_worker_that_does_not_answer_is_told(tmp_path: Path) -> None:
    """A worker without HTTP, or that hangs, is named with what to do."""
    settings = embedded(tmp_path)
    with owned(settings), pytest.raises(ClickHouseError, match="serves no HTTP") as caught:
        ask(settings, "SELECT 1")
    assert "web.enabled" in caught.value.remedy
    port = free_port()
    with (
        owned(settings, host="127.0.0.1", port=port),
        pytest.raises(ClickHouseError, match=rf"does not answer at http://127.0.0.1:{port}/sql"),
    ):
        ask(settings, "SELECT 1")


def test_a_directory_without_engine_is_told(tmp_path: Path) -> None:
    """A wrong directory is an error, and no new engine is made in it."""
    settings = Settings().in_directory(tmp_path)
    with pytest.raises(ConfigError, match="there is no embedded ClickHouse in") as caught:
        ask(settings, "SELECT 1")
    assert "--data" in caught.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_an_engine_without_owner_is_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a worker the engine itself answers, and only reading is allowed."""
    settings = embedded(tmp_path)
    database = open_database(settings.clickhouse, create=True)
    database.migrate()
    database.close()
    query = "SELECT number AS n, 1 / n AS inverse FROM numbers(2)"
    run(settings, query, "json")
    assert json.loads(capsys.readouterr().out) == [
        {"n": 0, "inverse": None},
        {"n": 1, "inverse": 1.0},
    ]
    run(settings, "SELECT 'x' AS name FROM numbers(20000)", "json")
    printed = capsys.readouterr()
    assert "there are more than these 10,000 rows" in printed.err
    assert len(json.loads(printed.out)) == 10_000
    with pytest.raises(ConfigError):
        ask(settings, "DROP TABLE panes")


def test_json_holds_what_json_can() -> None:
    """NaN is null, and what JSON does not know is text."""
    answer = Answer(["a", "b"], [[float("nan"), Path("x")], [None, "é"]])
    assert json.loads(as_json(answer)) == [{"a": None, "b": "x"}, {"a": None, "b": "é"}]


def test_the_table_shows_names_as_they_are() -> None:
    """Text is never read as markup, null is shown, and the rows are counted."""
    console = Console(width=60)
    with console.capture() as captured:
        console.print(as_table(Answer(["[bold]x", "ms"], [["[red]a", 1.23456789], [None, 2]])))
    shown = captured.get()
    for text in ("[bold]x", "[red]a", "1.23457", "null", "2 rows"):
        assert text in shown
    with console.capture() as captured:
        console.print(as_table(Answer(["n"], [])))
    assert "0 rows" in captured.get()
