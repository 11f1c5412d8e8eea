"""The real command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml
from clickhouse_server import ClickHouseServer

PATIENCE_S = 60.0

Process = subprocess.Popen[str]


def start(arguments: Sequence[str], home: Path, *, prelude: str = "") -> Process:
    """Start a command in a directory; `prelude` is Python that runs before it."""
    clean = {name: value for name, value in os.environ.items() if "TAILBUDGET_" not in name}
    code = f"{prelude}\nfrom tailbudget.streams.cli import main\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=home,
        env={**clean, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: Process) -> tuple[int, str]:
    """Wait for the end of a command; return its status and all that it said."""
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return process.returncode, out + err


def run(*arguments: str, home: Path, prelude: str = "") -> tuple[int, str]:
    """Run a command to its end; return its status and all that it said."""
    return ended(start(arguments, home, prelude=prelude))


def settings_file(home: Path, *, data_dir: Path | None = None, **groups: Mapping[str, Any]) -> Path:
    """Write settings with topics of their own, embedded ClickHouse and no port of ours."""
    prefix = f"s{uuid4().hex[:10]}"
    values: dict[str, Any] = {
        "kafka": {
            "prefix": prefix,
            "group": prefix,
            "partitions": 1,
            "requests": [{"topic": f"{prefix}.requests", "service": "chat"}],
        },
        "clickhouse": {"interface": "chdb"},
        "data_dir": str(data_dir or home / "data"),
        "web": {"enabled": False},
    }
    for name, group in groups.items():
        values[name] = {**values.get(name, {}), **group}
    path = home / "tailbudget.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def on_server(server: ClickHouseServer, **changes: Any) -> dict[str, Any]:
    """Return the ClickHouse settings for a database on a server that does not exist yet."""
    return {
        "interface": "http",
        "host": "127.0.0.1",
        "port": server.port,
        "username": server.username,
        "password": server.password,
        "database": f"start_{uuid4().hex[:10]}",
        **changes,
    }
