"""Fixtures of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from audited_logs import Answer, Command, command


@pytest.fixture
def tailbudget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Return a function that runs a command in an empty directory with a clean environment."""
    return command(monkeypatch, capsys, tmp_path)


@pytest.fixture
def audit(tailbudget: Command) -> Command:
    """Return a function that audits a log and writes the JSON report."""

    def run(*arguments: object) -> Answer:
        return tailbudget("audit", *arguments, "--format", "json")

    return run
