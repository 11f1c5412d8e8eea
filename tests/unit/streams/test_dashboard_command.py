"""`tailbudget dashboard`: it serves what ClickHouse has, or says why it cannot."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import requests
from audited_logs import Command

from tailbudget.schemas.settings import Settings
from tailbudget.streams.data_directory import DataDirectory
from tailbudget.streams.database import open_database
from tailbudget.streams.embedded import free_port

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def test_a_running_worker_serves_it_itself(tailbudget: Command, tmp_path: Path) -> None:
    """While a process owns the embedded engine, the error names the address to open."""
    (tmp_path / "demo" / "clickhouse").mkdir(parents=True)
    with DataDirectory(tmp_path / "demo") as directory:
        directory.announce(host="127.0.0.1", port=6099)
        answer = tailbudget("dashboard", "--data", tmp_path / "demo")
    assert answer.status == 2
    assert "owns the embedded ClickHouse" in answer.err
    assert "open http://127.0.0.1:6099/" in answer.err


def test_there_must_be_a_database(tailbudget: Command, tmp_path: Path) -> None:
    """A directory without an engine is refused, and not made."""
    answer = tailbudget("dashboard", "--data", tmp_path / "nothing")
    assert answer.status == 2
    assert "there is no embedded ClickHouse" in answer.err
    assert not (tmp_path / "nothing").exists()


def started(data: Path, port: int) -> subprocess.Popen[str]:
    """Start it as a process."""
    command = [sys.executable, "-m", "tailbudget.streams.cli", "dashboard"]
    return subprocess.Popen(
        [*command, "--data", str(data), "--port", str(port)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answers(url: str, process: subprocess.Popen[str]) -> bool:
    """Wait until it answers; False when it ends instead."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return requests.get(url, timeout=5).ok
        except requests.RequestException:
            time.sleep(0.1)
    return False


def test_it_serves_until_a_signal(tmp_path: Path) -> None:
    """It says where it is, answers there, and ends with status 0; a taken port is an error."""
    settings = Settings.model_validate(
        {"clickhouse": {"interface": "chdb"}, "data_dir": str(tmp_path / "demo")}
    )
    store = open_database(settings.clickhouse, create=True)
    store.migrate()
    store.close()
    port = free_port()
    process = started(tmp_path / "demo", port)
    try:
        assert answers(f"http://127.0.0.1:{port}/data/services", process)
    finally:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert f"http://127.0.0.1:{port}/" in out
    with socket.create_server(("127.0.0.1", port)):
        process = started(tmp_path / "demo", port)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"web.port {port}" in err
