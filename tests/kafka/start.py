"""Run a real Apache Kafka on this machine, without Docker: needs Java 17 and Maven.

    python tests/kafka/start.py --port 0 --print-bootstrap

fetches the server's artefacts once into .cache/kafka, starts one node in KRaft mode on 127.0.0.1,
prints its address when it answers, and stays until SIGINT or SIGTERM; its data go with it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tailbudget.streams.embedded import dies_with, end_process, free_port

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "kafka"
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=5
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=5
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
LOGGING = """\
Configuration:
  status: "WARN"
  Appenders:
    Console:
      name: "out"
      PatternLayout:
        pattern: "%d %p %m (%c)%n"
  Loggers:
    Root:
      level: "WARN"
      AppenderRef:
        ref: "out"
"""


class RealKafka:
    """One Apache Kafka node, for as long as the context lasts.

    Attributes:
        port: the port that clients use; chosen when it is 0.
        heap_mb: memory of the Java heap.
    """

    def __init__(self, port: int = 0, *, heap_mb: int = 512) -> None:
        self.port = port or free_port()
        self.heap_mb = heap_mb
        self._home: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What the server has printed so far."""
        path = self._home and self._home / "server.log"
        return path.read_text(errors="replace") if path and path.exists() else ""

    def start(self, timeout_s: float = 90.0) -> None:
        """Format its storage, start it and wait until it answers; raises RuntimeError."""
        libs = artefacts()
        self._home = Path(tempfile.mkdtemp(prefix="tailbudget-kafka-"))
        properties = self._home / "server.properties"
        properties.write_text(
            PROPERTIES.format(port=self.port, controller=free_port(), data=self._home / "data")
        )
        (self._home / "log4j2.yaml").write_text(LOGGING)
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        storage = self._java(libs, "kafka.tools.StorageTool", 128)
        _quietly([*storage, "format", "-t", cluster, "-c", str(properties)])
        with (self._home / "server.log").open("wb") as log:
            # A session of its own, so that Ctrl-C reaches us first.
            self._process = subprocess.Popen(
                [*self._java(libs, "kafka.Kafka", self.heap_mb), str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=dies_with(os.getpid()),  # noqa: PLW1509 - one system call, no locks
            )
        self._await_answer(timeout_s)

    def stop(self) -> None:
        """Stop the server and remove its data."""
        process, self._process = self._process, None
        if process is not None:
            end_process(process, 10)
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)

    def kill(self) -> None:
        """Kill the server at once, as a power cut would; `stop` is still needed."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def alive(self) -> bool:
        """Say whether the server still runs."""
        return self._process is not None and self._process.poll() is None

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

    def _java(self, libs: Path, main: str, heap_mb: int) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._home}/log4j2.yaml"
        return ["java", f"-Xmx{heap_mb}m", "-XX:+UseSerialGC", logging, "-cp", f"{libs}/*", main]

    def _await_answer(self, timeout_s: float) -> None:
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        deadline = time.monotonic() + timeout_s
        while self.alive() and time.monotonic() < deadline:
            try:
                if client.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                continue
        raise RuntimeError(f"Apache Kafka does not start on {self.bootstrap}:\n{self.log[-4000:]}")


def artefacts() -> Path:
    """Return the folder of the server's jars, fetched by Maven when it is not there yet."""
    pom = HERE / "pom.xml"
    libs = CACHE / hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    if libs.exists():
        return libs
    java_17()
    CACHE.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=CACHE))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={draft}"]
    try:
        _quietly(["mvn", "-q", "-B", "-ntp", "-f", str(pom), *goal])
        if not libs.exists():
            draft.rename(libs)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return libs


def java_17() -> None:
    """Check that a recent enough Java is there; raises RuntimeError."""
    text = _quietly(["java", "-version"])
    found = re.search(r'version "(\d+)', text)
    if found is None or int(found[1]) < 17:
        raise RuntimeError(f"Apache Kafka needs Java 17 or later; this is: {text.strip()}")


def main() -> int:
    """Run the server until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="Run a real Apache Kafka on this machine.")
    parser.add_argument("--port", type=int, default=9092, help="0 chooses one (default: 9092)")
    parser.add_argument("--print-bootstrap", action="store_true", help="print the address alone")
    options = parser.parse_args()
    stopped = threading.Event()
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, lambda *_: stopped.set())
    try:
        with RealKafka(options.port) as kafka:
            text = f"Apache Kafka answers at {kafka.bootstrap}; Ctrl-C ends it"
            sys.stdout.write((kafka.bootstrap if options.print_bootstrap else text) + "\n")
            sys.stdout.flush()
            while kafka.alive() and not stopped.wait(0.5):
                pass
            if not stopped.is_set():
                sys.stderr.write(f"Apache Kafka ended by itself:\n{kafka.log[-4000:]}\n")
                return 1
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _quietly(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
    except FileNotFoundError:
        raise RuntimeError(
            f"{command[0]} is not installed: Apache Kafka needs Java 17 and Maven"
        ) from None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"{command[0]} failed:\n{error.stdout[-4000:]}") from None
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
