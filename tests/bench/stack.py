"""A broker and a real worker process for the benchmarks."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import orjson
import yaml
from process import ROOT, Child, cpu_s, environment, tailbudget

from tailbudget.streams.embedded import EmbeddedBroker, free_port


@contextmanager
def broker(bootstrap: str | None, *, embedded: bool, home: Path) -> Iterator[str]:
    """Yield the address of the given broker, or of one that is started for the context."""
    if bootstrap:
        yield bootstrap
    elif embedded:
        with EmbeddedBroker(log_path=home / "broker.log") as tansu:
            yield tansu.bootstrap
    else:
        start = [sys.executable, str(ROOT / "tests/kafka/start.py"), "--port", str(free_port())]
        with Child(start, log=home / "kafka.log") as kafka:
            kafka.wait_for("Ctrl-C ends it", timeout_s=300)
            yield kafka.output.split(" answers at ")[1].split(";")[0]


@contextmanager
def database(home: Path, *, external: bool) -> Iterator[dict[str, Any]]:
    """Yield the settings of a ClickHouse that is another process; none for the embedded one."""
    if not external:
        yield {}
        return
    sys.path.append(str(ROOT / "tests" / "support"))
    from clickhouse_server import ClickHouseServer  # noqa: PLC0415 - it loads the engine

    with ClickHouseServer(home / "clickhouse") as server:
        yield {
            "interface": "http",
            "host": "127.0.0.1",
            "port": server.port,
            "username": server.username,
            "password": server.password,
        }


class WorkerProcess:
    """`tailbudget worker` as a process of its own, with its own topics and embedded ClickHouse.

    Attributes:
        topic: its request topic.
        group: its consumer group.
        partitions: of the request topic.
        started_cpu_s: CPU seconds that it had spent when it began to consume.
        started_at: `time.monotonic()` of that moment.
    """

    def __init__(
        self,
        bootstrap: str,
        home: Path,
        *,
        topic: str | None = None,
        core: int | None = None,
        embedded: bool = False,
        run: tuple[str, ...] = (),
        **groups: Mapping[str, Any] | Sequence[Any],
    ) -> None:
        self.group = f"bench-{uuid4().hex[:8]}"
        self.topic = topic or f"{self.group}.requests"
        self.partitions = 4
        self.started_cpu_s = self.started_at = 0.0
        self._port = free_port()
        self._config = home / "tailbudget.yaml"
        settings = self._settings(bootstrap, home, embedded=embedded)
        for name, group in groups.items():
            old = settings.get(name)
            settings[name] = {**old, **group} if isinstance(group, Mapping) and old else group
        self._config.write_text(yaml.safe_dump(settings))
        command = tailbudget("worker", "-c", str(self._config))
        if run:  # a profiler that is given the program as a file
            command = [*run, str(ROOT / "tests/bench/worker_main.py"), *command[3:]]
        self._child = Child(command, log=home / "worker.log", core=core)
        self._stack = ExitStack()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    @property
    def output(self) -> str:
        """What it has printed."""
        return self._child.output

    @property
    def cpu_s(self) -> float:
        """CPU seconds since it began to consume."""
        return cpu_s(self.pid) - self.started_cpu_s

    def __enter__(self) -> Self:
        migrate = tailbudget("migrate", "-c", str(self._config))
        subprocess.run(migrate, check=True, capture_output=True, cwd=ROOT, env=environment())
        self._stack.enter_context(self._child)
        self._child.wait_for("worker started")
        self.started_cpu_s, self.started_at = cpu_s(self.pid), time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def query(self, sql: str) -> list[list[Any]]:
        """Ask its ClickHouse, through its own HTTP port."""
        body = orjson.dumps({"query": sql})
        request = urllib.request.Request(f"{self._url}/sql", body)  # noqa: S310 - our own worker
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return list(orjson.loads(answer.read())["rows"])

    def status(self) -> dict[str, Any]:
        """Return what it tells of itself."""
        with urllib.request.urlopen(f"{self._url}/status", timeout=60) as answer:  # noqa: S310
            return dict(orjson.loads(answer.read()))

    def counted(self) -> int:
        """Return how many requests are in ClickHouse."""
        sql = "SELECT sum(requests) FROM panes FINAL WHERE stage = 'total'"
        return int(self.query(sql)[0][0] or 0)

    def wait_until_counted(self, records: int, timeout_s: float = 300.0) -> None:
        """Wait until ClickHouse has exactly so many requests; raises RuntimeError otherwise."""
        deadline = time.monotonic() + timeout_s
        while (found := self.counted()) != records:
            self._child.require_alive()
            if found > records or time.monotonic() > deadline:
                raise RuntimeError(f"ClickHouse has {found:,} requests, not {records:,}")
            time.sleep(0.25)

    def require_alive(self) -> None:
        """Raise RuntimeError when it has ended."""
        self._child.require_alive()

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _settings(self, bootstrap: str, home: Path, *, embedded: bool) -> dict[str, Any]:
        return {
            "kafka": {
                "bootstrap": bootstrap,
                "prefix": self.group,
                "group": self.group,
                "partitions": self.partitions,
                "contiguous": embedded,
                "session_timeout_s": 3.0 if embedded else 10.0,
                "heartbeat_s": 0.5 if embedded else 3.0,
                "requests": [{"topic": self.topic}],
            },
            "clickhouse": {"interface": "chdb", "database": "bench"},
            "defaults": {"slo": "p95=2000,p99=5000"},
            "data_dir": str(home / "data"),
            "web": {"port": self._port},
        }


@contextmanager
def folder() -> Iterator[Path]:
    """Yield a folder that goes with the context."""
    with tempfile.TemporaryDirectory(prefix="tailbudget-bench-") as name:
        yield Path(name)
