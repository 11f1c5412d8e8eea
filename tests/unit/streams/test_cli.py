"""The command line: usage, settings, errors with a remedy, and exit statuses."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from command_line import run as run_process

from tailbudget.schemas.errors import BrokerError, ConfigError
from tailbudget.schemas.kafka import RequestFormat
from tailbudget.streams.cli import main
from tailbudget.streams.cli.interrupt import until_interrupted
from tailbudget.streams.cli.options import RUN_S, duration_s
from tailbudget.streams.embedded import EmbeddedBroker, free_port
from tailbudget.streams.faulty.scenarios import FaultScenario
from tailbudget.streams.kafka import await_broker, client_config
from tailbudget.streams.sources import FORMATS

COMMANDS = (
    "up",
    "worker",
    "check",
    "migrate",
    "simulate",
    "replay",
    "audit",
    "report",
    "sql",
    "dashboard",
)

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Return a function that runs a command in an empty directory with a clean environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TAILBUDGET_")]:
        monkeypatch.delenv(name)

    def run_command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tailbudget", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        printed = capsys.readouterr()
        status = caught.value.code
        return (status if isinstance(status, int) else 0), printed.out, printed.err

    return run_command


@dataclass
class Recorder:
    """Stands in for the module that a command runs."""

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    def run(self, *arguments: Any, **named: Any) -> None:
        self.calls.append((arguments, named))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Recorder]:
    """Return a function that puts a recorder in the place of a module."""

    def replace(name: str) -> Recorder:
        recorder = Recorder()
        module = ModuleType(name)
        module.run = recorder.run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        return recorder

    return replace


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run: Run, command: str) -> None:
    """`--help` says what the command does and shows a line to copy."""
    status, out, _ = run(command, "--help")
    assert status == 0
    assert "Example: " in out
    assert f"tailbudget {command}" in " ".join(out.split())


def test_help_lists_every_command(run: Run) -> None:
    """The overview names all commands, and no arguments at all show it too."""
    status, out, _ = run("--help")
    assert status == 0
    assert [command for command in COMMANDS if f" {command} " not in out] == []
    assert "Start with tailbudget up" in run()[1]


def test_help_imports_nothing_heavy() -> None:
    """`--help` answers without the libraries that do the work."""
    code = (
        "import sys; sys.argv = ['tailbudget', '--help']\n"
        "from tailbudget.streams.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ['faust', 'polars', 'chdb', 'clickhouse_connect', 'confluent_kafka',"
        " 'aiokafka', 'apprise', 'pandas', 'pyarrow', 'river']\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


def test_an_error_is_two_lines_on_stderr(run: Run) -> None:
    """A settings error ends with status 2, and says what is wrong and the remedy."""
    status, out, err = run("migrate", "--config", "none.yaml")
    assert (status, out) == (2, "")
    assert err == (
        "error: settings file none.yaml does not exist\n"
        "remedy: give --config PATH, or start from tailbudget.example.yaml\n"
    )


def test_what_is_away_ends_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer is an error of status 1."""
    monkeypatch.setenv("TAILBUDGET_CLICKHOUSE__PORT", str(free_port()))
    status, _, err = run("migrate")
    assert status == 1
    assert err.startswith("error: ClickHouse at 127.0.0.1:")
    assert "\nremedy: start it, or set clickhouse.host" in err


@pytest.mark.parametrize("arguments", [["nope"], ["check", "--nope"], ["sql"]])
def test_wrong_usage_ends_with_2(run: Run, arguments: list[str]) -> None:
    """Unknown commands, unknown options and missing arguments are wrong usage."""
    assert run(*arguments)[0] == 2


def test_settings_come_from_the_option_the_variable_or_the_directory(
    run: Run,
    stand_in: Callable[[str], Recorder],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """--config wins over TAILBUDGET_CONFIG, which wins over ./tailbudget.yaml."""
    recorder = stand_in("tailbudget.streams.serve")
    for name in ("option", "variable", "tailbudget"):
        (tmp_path / f"{name}.yaml").write_text(f"kafka: {{group: {name}}}")
    run("worker")
    monkeypatch.setenv("TAILBUDGET_CONFIG", "variable.yaml")
    run("worker")
    run("worker", "--config", "option.yaml")
    groups = [settings.kafka.group for (settings,), _ in recorder.calls]
    assert groups == ["tailbudget", "variable", "option"]


def test_up_hands_on_its_options(run: Run, stand_in: Callable[[str], Recorder]) -> None:
    """The duration, the directory and the rate arrive as they are meant."""
    recorder = stand_in("tailbudget.streams.up")
    assert run("up", "--for", "2m", "--data", "demo", "--rate", "50")[0] == 0
    (_, named) = recorder.calls[0]
    assert named == {"for_s": 120.0, "data": Path("demo"), "rate": 50.0, "played": None}


def test_a_scenario_is_played_or_refused(run: Run, stand_in: Callable[[str], Recorder]) -> None:
    """A name that is none says which there are."""
    recorder = stand_in("tailbudget.streams.up")
    assert run("up", "--scenario", "leak x2, big_batches", "--rate", "9")[0] == 0
    played = recorder.calls[0][1]["played"]
    assert played.service == "chat"
    assert played.scenario == FaultScenario("leak", 2.0, "big_batches", rate=9.0, duration_s=RUN_S)
    status, _, err = run("up", "--scenario", "laek")
    assert status == 2
    assert "'laek' is no fault" in err
    assert "noisy_neighbour" in err


def test_an_empty_query_is_refused(run: Run) -> None:
    """A query of blanks is told before anything is opened."""
    status, _, err = run("sql", " ")
    assert (status, "the query is empty" in err) == (2, True)


def test_the_database_is_made_and_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`migrate` makes the tables once, and `sql --data` asks the engine in that directory."""
    with monkeypatch.context() as patch:
        patch.setenv("TAILBUDGET_CLICKHOUSE__INTERFACE", "chdb")
        patch.setenv("TAILBUDGET_DATA_DIR", "demo")
        status, out, _ = run("migrate")
        assert (status, out.splitlines()[-1]) == (0, "tables are up to date")
        assert "applied 0001_panes" in out
        assert run("migrate")[1] == "tables are up to date\n"
    query = "SELECT count() > 0 AS made FROM migrations"
    status, out, _ = run("sql", "--data", "demo", query, "--format", "json")
    assert (status, json.loads(out)) == (0, [{"made": 1}])
    status, _, err = run("sql", "--data", "demo", "SELEC 1")
    assert (status, err.startswith("error: ")) == (2, True)


def test_check_ends_with_1_when_something_is_wrong(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finding is a line with its remedy below, and the status tells a script."""
    monkeypatch.setenv("TAILBUDGET_KAFKA__BOOTSTRAP", f"127.0.0.1:{free_port()}")
    monkeypatch.setenv("TAILBUDGET_CLICKHOUSE__INTERFACE", "chdb")
    status, out, _ = run("check", "--patience", "0.2")
    assert status == 1
    lines = out.splitlines()
    assert lines[0].startswith("ok    settings: ")
    assert lines[1].startswith("WRONG broker: no Kafka broker answers at 127.0.0.1:")
    assert lines[2].startswith("      remedy: ")


def test_replay_refuses_before_it_connects(run: Run, tmp_path: Path) -> None:
    """A wrong speed, a missing log and a log of another format are told at once."""
    log = tmp_path / "log.jsonl"
    log.write_text('{"request_id": "a", "timestamp": "2026-03-02T10:00:00Z", "total_ms": 1}\n')
    assert "is no speed" in run("replay", str(log), "--speed", "fast")[2]
    assert "cannot read the log" in run("replay", "none.jsonl")[2]
    status, _, err = run("replay", str(log), "--format", "aiperf")
    assert (status, "no request topic takes the format 'aiperf'" in err) == (2, True)


def test_an_interrupt_ends_long_work() -> None:
    """The first signal ends the wait for good; the second is no longer ours."""
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)
        wait = until_interrupted()
        try:
            assert wait(0.0) is False
            signal.raise_signal(number)
            assert wait(60.0) is True
            assert wait(60.0) is True
            assert signal.getsignal(number) == signal.SIG_DFL
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(number, before)


def test_simulate_says_what_it_published(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The topics are made as the worker wants them, and the count at the end is what is there."""
    with EmbeddedBroker(log_path=tmp_path / "broker.log") as broker:
        monkeypatch.setenv("TAILBUDGET_KAFKA__BOOTSTRAP", broker.bootstrap)
        monkeypatch.setenv("TAILBUDGET_KAFKA__PARTITIONS", "2")
        status, out, err = run("simulate", "--for", "1s", "--rate", "50")
        assert (status, err) == (0, "")
        published = re.search(r"published ([\d,]+) records and 0 deploy events", out)
        assert published
        assert int(published[1]) > 0
        present = await_broker(client_config(broker.bootstrap))
        assert set(present.values()) == {2}
        assert {"tailbudget.requests", "tailbudget.panes", "tailbudget.dead-letters"} <= set(
            present
        )


def test_the_formats_of_the_settings_are_those_that_decode() -> None:
    """Every format that the settings accept has a decoder, and the other way round."""
    assert set(get_args(RequestFormat)) == set(FORMATS)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("120s", 120.0), ("1.5m", 90.0), ("2h", 7200.0), ("250ms", 0.25), (None, None)],
)
def test_a_duration_is_read(text: str | None, seconds: float | None) -> None:
    """Durations have the units that people write."""
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5", "5 parsecs", "1e3", "nan"])
def test_a_wrong_duration_is_refused(text: str) -> None:
    """What is no duration, or none at all, is told."""
    with pytest.raises(ConfigError, match="is no duration"):
        duration_s(text)


def test_the_tree_of_errors_has_its_statuses() -> None:
    """Settings errors end with 2 and everything that is away with 1."""
    assert (ConfigError("x").exit_status, BrokerError("x").exit_status) == (2, 1)


def test_numpy_has_one_thread(tmp_path: Path) -> None:
    """What numpy multiplies is small; whoever wants a pool of threads may still ask for it."""
    told = "import atexit, os; atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS']))"
    assert run_process("--help", home=tmp_path, prelude=told)[1].endswith("\n1\n")
    asked = f"{told}; os.environ['OPENBLAS_NUM_THREADS'] = '3'"
    assert run_process("--help", home=tmp_path, prelude=asked)[1].endswith("\n3\n")
