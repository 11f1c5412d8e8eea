"""`tailbudget audit` as people run it, and what it answered."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tailbudget.streams.cli import main

DATA = Path(__file__).resolve().parents[1] / "data"
CASES = DATA / "cases"
T0_MS = 1_772_445_600_000  # 2026-03-02T10:00:00Z
BOUND = 1 / 128
"""Relative error of a percentile that is read off a sketch."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command wrote, and how it ended.

    Attributes:
        status: the exit status.
        out: standard output.
        err: standard error.
    """

    status: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """The JSON report; numbers that JSON does not know are refused."""
        found: dict[str, Any] = json.loads(self.out, parse_constant=_refuse)
        return found

    def at(self, percentile: str, basis: str = "all") -> dict[str, Any]:
        """Return a row of the end-to-end latency."""
        rows = self.report["end_to_end"]
        (row,) = [r for r in rows if (r["percentile"], r["basis"]) == (percentile, basis)]
        found: dict[str, Any] = row
        return found

    def stage(self, name: str) -> dict[str, Any]:
        """Return a row of the stages."""
        (row,) = [row for row in self.report["stages"] if row["stage"] == name]
        found: dict[str, Any] = row
        return found

    def warned(self, *words: str) -> bool:
        """Tell whether one warning has all of these words."""
        return any(all(word in text for word in words) for text in self.report["warnings"])


Command = Callable[..., Answer]


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path
) -> Command:
    """Return a function that runs a command in an empty directory with a clean environment."""
    monkeypatch.chdir(home)
    for name in [name for name in os.environ if name.startswith("TAILBUDGET_")]:
        monkeypatch.delenv(name)

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["tailbudget", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        printed = capsys.readouterr()
        status = caught.value.code
        return Answer(status if isinstance(status, int) else 0, printed.out, printed.err)

    return run


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write requests as JSON lines; ids and times, one a second, are made up where they lack."""
    made = (
        {"request_id": f"r{i}", "timestamp": T0_MS + 1_000 * i, **row} for i, row in enumerate(rows)
    )
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in made))
    return path


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no JSON")
