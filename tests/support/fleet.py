"""Two worker processes on a real broker, to be killed; and the settings that they share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml
from clickhouse_server import ClickHouseServer

BOOTSTRAP = os.environ.get("TAILBUDGET_TEST_BOOTSTRAP")
PARTITIONS = 4


class Fleet:
    """Two worker processes, one of which is killed and replaced now and then."""

    def __init__(self, config: Path, home: Path) -> None:
        self._config = config
        self._home = home
        self._started = 0
        self._logs = [1, 2]
        self.workers = [self._start(), self._start()]

    def _start(self) -> subprocess.Popen[bytes]:
        self._started += 1
        log = (self._home / f"worker-{self._started}.log").open("wb")
        with log:
            return subprocess.Popen(
                [sys.executable, "-m", "tailbudget.streams.cli", "worker", "-c", self._config],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill(self, which: int) -> None:
        """Kill a worker at once, and start another in its place."""
        assert self.workers[which].poll() is None, f"it ended by itself\n{self.logs()}"
        self.workers[which].kill()
        self.workers[which].wait()
        self.workers[which] = self._start()
        self._logs[which] = self._started

    def ready(self) -> bool:
        """Say whether both present workers have started."""
        newest = [self._home / f"worker-{log}.log" for log in self._logs]
        return all("worker started" in log.read_text(errors="replace") for log in newest)

    def stop(self) -> list[int]:
        """End all in order; return their exit statuses."""
        for worker in self.workers:
            worker.terminate()
        return [worker.wait(60) for worker in self.workers]

    def logs(self) -> str:
        """Return the end of each worker's log."""
        logs = sorted(self._home.glob("worker-*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-800:]}" for log in logs)


def settings_file(home: Path, server: ClickHouseServer, **groups: Any) -> Path:
    """Write the settings that both workers share; `groups` are added to them."""
    name = f"kill{uuid4().hex[:8]}"
    path = home / "tailbudget.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "kafka": {
                    "bootstrap": BOOTSTRAP,
                    "prefix": name,
                    "group": name,
                    "partitions": PARTITIONS,
                    "session_timeout_s": 6.0,
                    "heartbeat_s": 1.0,
                    "requests": [{"topic": f"{name}.requests", "service": "chat"}],
                },
                "clickhouse": {
                    "host": "127.0.0.1",
                    "port": server.port,
                    "database": name,
                    "password": server.target().password,
                },
                "stream": {"flush_s": 1.0},
                "web": {"enabled": False},
                "data_dir": str(home / "data"),
                **groups,
            }
        )
    )
    return path
