"""A ClickHouse server as a process of its own, which tests stop, start and make refuse.

It is the embedded engine behind `clickhouse_http`: no package ships a server new enough.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import chdb
from clickhouse_http import FAULTS, INSERTS, serving

from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.streams.embedded import dies_with


class ClickHouseServer:
    """A server on 127.0.0.1 for as long as the context lasts.

    Stopped and started again, it has the same data, the same port and no faults.

    Attributes:
        path: its directory.
        port: its HTTP port; valid once it was started.
        username: a user that it knows.
        password: the user's.
    """

    username = "default"
    password = "s3cret"  # noqa: S105

    def __init__(self, path: Path) -> None:
        self.path = path
        self.port = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and return when it answers."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self.path), str(self.port)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            preexec_fn=dies_with(os.getpid()),  # noqa: PLW1509 (one system call, no locks)
        )
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        assert told, "the ClickHouse server does not start"
        self.port = int(told)

    def stop(self) -> None:
        """End it at once, as an outage does; what it acknowledged is on disk."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def target(self, database: str = "default") -> ClickHouseTarget:
        """Return how to reach it."""
        return ClickHouseTarget(
            "http",
            port=self.port,
            username=self.username,
            password=self.password,
            database=database,
            request_timeout_s=30,
        )

    def fail_inserts(self, faults: Sequence[tuple[int, int] | str], table: str = "") -> None:
        """Answer the next inserts with (HTTP status, ClickHouse code), or hang up.

        Args:
            faults: first to last.
            table: whose inserts; empty: any.
        """
        self._ask(FAULTS, {"faults": list(faults), "table": table})

    def inserts(self) -> list[str]:
        """Return the statements of the inserts that arrived since it started."""
        return [str(statement) for statement in self._ask(INSERTS, None)]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _ask(self, path: str, value: Any) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(value).encode()
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read())


def _serve(path: Path, port: int) -> None:
    path.mkdir(parents=True, exist_ok=True)
    engine = chdb.connect(str(path.resolve()))
    with serving(path, port=port, password=ClickHouseServer.password) as server:
        print(server.port, flush=True)  # noqa: T201 (whoever started us waits for it)
        threading.Event().wait()
    engine.close()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
