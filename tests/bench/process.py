"""Processes under measurement: what they cost, and where they may run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tailbudget.streams.embedded import end_process

ROOT: Final = Path(__file__).resolve().parents[2]
TICKS_S: Final = os.sysconf("SC_CLK_TCK")
_STOP_S: Final = 40.0


def cpu_s(pid: int) -> float:
    """Return the CPU seconds, user and system, that a process has spent over all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_S


def memory_mb(pid: int, name: str) -> float:
    """Return a line of /proc/PID/status, such as VmHWM (peak) or VmRSS, in MB of 10^6 bytes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    raise KeyError(name)


def pin(pid: int, core: int | None) -> None:
    """Keep a process, all its threads to come included, on one core; None leaves it free."""
    if core is not None:
        os.sched_setaffinity(pid, {core})


def last_core() -> int:
    """Return the core that a process under measurement is pinned to."""
    return max(os.sched_getaffinity(0))


class Child:
    """A process of ours that is ended, by its id, with the context.

    Attributes:
        log: file that it writes its output to.
    """

    def __init__(self, command: list[str], *, log: Path, core: int | None = None) -> None:
        self.log = log
        self._command = command
        self._core = core
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its id."""
        if self._process is None:
            raise RuntimeError("it was not started")
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process is None or self._process.poll() is not None

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace")

    def require_alive(self) -> None:
        """Raise RuntimeError, with its last words, when it has ended."""
        if self.ended:
            raise RuntimeError(f"{self._command[:3]} ended:\n{self.output[-3000:]}")

    def wait_for(self, text: str, timeout_s: float = 60.0, every_s: float = 0.01) -> None:
        """Wait until it has printed this text."""
        deadline = time.monotonic() + timeout_s
        while text not in self.output:
            self.require_alive()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{text!r} does not appear:\n{self.output[-3000:]}")
            time.sleep(every_s)

    def stop(self) -> None:
        """End it in order, with SIGTERM; kill it when it does not end."""
        process, self._process = self._process, None
        if process is not None:
            end_process(process, _STOP_S)

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, env=environment()
            )
        pin(self._process.pid, self._core)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def environment() -> dict[str, str]:
    """Return the environment of children: ours, and one thread for each library that has a pool."""
    return {
        **os.environ,
        "POLARS_MAX_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def tailbudget(*arguments: str) -> list[str]:
    """Return the command line of `tailbudget`, of this checkout or installation."""
    return [sys.executable, "-c", "from tailbudget.streams.cli import main; main()", *arguments]
