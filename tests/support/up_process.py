"""`tailbudget up` as a process, with the port that it serves on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import requests

from tailbudget.streams.embedded import free_port

COMMAND = (sys.executable, "-m", "tailbudget.streams.cli")


class Up:
    """Runs the whole stack for as long as the context lasts.

    Args:
        data: directory of its data.

    Attributes:
        url: of its pages, without a slash at the end.
    """

    def __init__(self, data: Path, *options: str) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._told = data.with_suffix(".log")
        self._options = ("--data", str(data), *options)
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TAILBUDGET_WEB__PORT": str(port),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._told.open("wb") as out:
            self._process = subprocess.Popen(
                [*COMMAND, "up", *self._options], env=self._environment, stdout=out, stderr=out
            )
        deadline = time.monotonic() + 120
        while not self._answers():
            assert self._process.poll() is None, self.told()
            assert time.monotonic() < deadline, self.told()
            time.sleep(0.2)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(timeout=60) == 0, self.told()

    def told(self) -> str:
        """Return what it printed."""
        return self._told.read_text(errors="replace")

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/healthz", timeout=5).ok
        except requests.RequestException:
            return False
