"""Everything on one machine: one process at a time on a directory, asked beside and after it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    "TAILBUDGET_TEST_BOOTSTRAP" in os.environ, reason="it brings its own broker"
)

COMMAND = [sys.executable, "-m", "tailbudget.streams.cli"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
COUNT = "SELECT sum(requests) AS n FROM current_panes WHERE stage = 'total'"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*COMMAND, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


def counted(data: Path) -> int:
    """Ask how many requests the directory's ClickHouse holds, whoever owns it."""
    asked = run("sql", "--data", str(data), "--format", "json", COUNT)
    return int(json.loads(asked.stdout)[0]["n"] or 0) if asked.returncode == 0 else 0


def test_the_stack_runs_is_asked_ends_and_goes_on(tmp_path: Path) -> None:
    """A second `up` is refused, SQL works beside and after, SIGINT ends it with status 0."""
    data = tmp_path / "data"
    told = tmp_path / "told"
    with told.open("w") as out:
        process = subprocess.Popen(
            [*COMMAND, "up", "--data", str(data)], env=ENVIRONMENT, stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + 60
        while counted(data) < 500 or "last minute p50" not in told.read_text():
            assert process.poll() is None, told.read_text()
            assert time.monotonic() < deadline, told.read_text()
            time.sleep(1)
        second = run("up", "--data", str(data), "--for", "1s")
        assert second.returncode == 2
        assert "in use by process" in second.stderr
        assert "remedy:" in second.stderr
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    output = told.read_text()
    assert process.returncode == 0, output
    assert "Traceback" not in output
    before = counted(data)
    assert before >= 500
    again = run("up", "--data", str(data), "--for", "15s")
    assert again.returncode == 0, again.stderr
    assert counted(data) > before + 500
