"""Build and run a real OpenTelemetry Collector on this machine: needs Go.

    python tests/otel/collector.py

builds it once from its Go modules into .cache/otelcol and prints its path. The suite starts it
with `collector.yaml`, which is the example of docs/sources.md.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tailbudget.streams.embedded import dies_with, end_process, free_port

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "otelcol"
CONFIG = HERE / "collector.yaml"
CACHE = HERE.parents[1] / ".cache" / "otelcol"
READY = "Everything is ready"
START_S = 60.0
STOP_S = 20.0


class Collector:
    """One collector, for as long as the context lasts.

    Attributes:
        endpoint: HOST:PORT where it takes OTLP over HTTP.
    """

    def __init__(self, bootstrap: str, topic: str, encoding: str, **more: str) -> None:
        """Prepare it.

        Args:
            bootstrap: address of the broker.
            topic: that it exports to.
            encoding: `otlp_proto` or `otlp_json`.
            more: settings of its Kafka exporter that the example leaves out.
        """
        self.endpoint = f"127.0.0.1:{free_port()}"
        self._variables = {
            "OTLP_ENDPOINT": self.endpoint,
            "KAFKA_BOOTSTRAP": bootstrap,
            "KAFKA_TOPIC": topic,
            "KAFKA_ENCODING": encoding,
        }
        # Its own metrics would take a port that is not free for two.
        self._settings = {"service::telemetry::metrics::level": "none"}
        self._settings |= {f"exporters::kafka::{name}": value for name, value in more.items()}
        self._home = tempfile.TemporaryDirectory(prefix="tailbudget-otelcol-")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it has printed so far."""
        path = self._log_path
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start it and wait until it takes spans; raises RuntimeError."""
        command = [str(binary()), "--config", f"file:{CONFIG}"]
        command += ["--config", f"file:{self._more()}"]
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **self._variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=dies_with(os.getpid()),  # noqa: PLW1509 - one system call, no locks
            )
        deadline = time.monotonic() + START_S
        while READY not in self.log:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the collector does not start:\n{self.log[-4000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it in order, so that it exports what it holds."""
        process, self._process = self._process, None
        if process is not None:
            end_process(process, STOP_S)
        self._home.cleanup()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def _log_path(self) -> Path:
        return Path(self._home.name) / "collector.log"

    def _more(self) -> Path:
        path = Path(self._home.name) / "more.yaml"
        path.write_text("".join(f"{name}: {value}\n" for name, value in self._settings.items()))
        return path


def binary() -> Path:
    """Return the collector, built by Go when it is not there yet; raises RuntimeError."""
    made = CACHE / _mark() / "otelcol"
    if made.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    draft = made.with_suffix(f".{os.getpid()}")
    _build(draft)
    draft.rename(made)
    return made


def _mark() -> str:
    files = sorted(path for path in SOURCE.iterdir() if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _build(target: Path) -> None:
    command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(target), "."]
    try:
        subprocess.run(
            command,
            cwd=SOURCE,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except FileNotFoundError:
        raise RuntimeError("go is not installed: the collector needs Go 1.26 or later") from None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"go build failed:\n{error.stdout[-4000:]}") from None


def main() -> int:
    """Build the collector and print where it is."""
    try:
        sys.stdout.write(f"{binary()}\n")
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
