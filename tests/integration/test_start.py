"""What is wrong at the start is named with its remedy, and the command ends with a status."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from clickhouse_server import ClickHouseServer
from command_line import ended, on_server, run, settings_file, start
from confluent_kafka import Producer
from new_topics import create_topics
from running_worker import GIVEN

from tailbudget.schemas.settings import load
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.data_directory import DataDirectory
from tailbudget.streams.embedded import EmbeddedBroker, free_port
from tailbudget.streams.kafka import client_config


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB; skipped where it cannot be mounted."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def migrated(server: ClickHouseServer, clickhouse: Mapping[str, Any]) -> ClickHouse:
    """Create the database of these settings, with its tables."""
    store = ClickHouse.open(server.target(clickhouse["database"]))
    store.migrate()
    return store


def assert_told(found: tuple[int, str], status: int, *said: str) -> None:
    """Fail unless the command ended so and said all that, with a remedy and no traceback."""
    assert found[0] == status, found[1]
    assert [text for text in ("remedy: ", *said) if text not in found[1]] == [], found[1]
    assert "Traceback" not in found[1]


@pytest.mark.parametrize("command", ["worker", "check", "migrate"])
def test_malformed_settings(command: str, tmp_path: Path) -> None:
    """The file and the line are named."""
    (tmp_path / "tailbudget.yaml").write_text("kafka:\n  bootstrap: [a\nweb: {}\n")
    assert_told(run(command, home=tmp_path), 2, "tailbudget.yaml", "line 3")


@pytest.mark.thorough
def test_no_broker_or_none_that_speaks_kafka(
    tmp_path: Path, clickhouse_server: ClickHouseServer
) -> None:
    """A worker names the address, where nobody listens and where somebody else does."""
    database = on_server(clickhouse_server)
    migrated(clickhouse_server, database).close()
    ports = (free_port(), clickhouse_server.port)
    workers = []
    for port in ports:
        home = tmp_path / str(port)
        home.mkdir()
        kafka = {"bootstrap": f"127.0.0.1:{port}"}
        settings_file(home, kafka=kafka, clickhouse=database)
        workers.append(start(["worker"], home))
        found = run("check", "--patience", "1", home=home)
        assert_told(found, 1, f"no Kafka broker answers at 127.0.0.1:{port}", "kafka.bootstrap")
    for port, worker in zip(ports, workers, strict=True):
        told = f"no Kafka broker answers at 127.0.0.1:{port}"
        assert_told(ended(worker), 1, told, "kafka.bootstrap")


@pytest.mark.parametrize("command", ["worker", "migrate", "check"])
def test_clickhouse_is_away(command: str, bootstrap: str, tmp_path: Path) -> None:
    """Host, port and the settings that lead there are named."""
    clickhouse = {"interface": "http", "port": free_port()}
    settings_file(tmp_path, kafka={"bootstrap": bootstrap}, clickhouse=clickhouse)
    told = f"ClickHouse at 127.0.0.1:{clickhouse['port']} does not answer"
    assert_told(run(command, home=tmp_path), 1, told, "clickhouse.host")


@pytest.mark.parametrize(("command", "status"), [("worker", 2), ("migrate", 2), ("check", 1)])
def test_a_wrong_password(
    command: str,
    status: int,
    bootstrap: str,
    clickhouse_server: ClickHouseServer,
    tmp_path: Path,
) -> None:
    """The settings for it are named, the password is not."""
    clickhouse = on_server(clickhouse_server, password="wr0ng")  # noqa: S106
    settings_file(tmp_path, kafka={"bootstrap": bootstrap}, clickhouse=clickhouse)
    found = run(command, home=tmp_path)
    assert_told(found, status, "clickhouse.password", f"127.0.0.1:{clickhouse_server.port}")
    assert "wr0ng" not in found[1]


def test_a_database_of_another_age(
    bootstrap: str, clickhouse_server: ClickHouseServer, tmp_path: Path
) -> None:
    """One that lacks tables is to be migrated; one that a newer release made is refused."""
    clickhouse = on_server(clickhouse_server)
    settings_file(tmp_path, kafka={"bootstrap": bootstrap}, clickhouse=clickhouse)
    assert_told(run("worker", home=tmp_path), 2, clickhouse["database"], "tailbudget migrate")
    store = migrated(clickhouse_server, clickhouse)
    store._writer.attempt(
        lambda client: client.command(
            "INSERT INTO migrations (number, name, checksum) VALUES (9999, 'later', '')"
        )
    )
    store.close()
    for command in ("worker", "migrate"):
        found = run(command, home=tmp_path)
        assert_told(found, 2, "the database is at migration 9999", "upgrade tailbudget")


def test_topics_that_are_not_as_they_must_be(
    bootstrap: str, clickhouse_server: ClickHouseServer, tmp_path: Path
) -> None:
    """Another number of partitions, and a topic that Kafka does not make, are named."""
    clickhouse = on_server(clickhouse_server)
    path = settings_file(tmp_path, kafka={"bootstrap": bootstrap}, clickhouse=clickhouse)
    migrated(clickhouse_server, clickhouse).close()
    panes = load(path, {}).kafka.panes_topic
    if GIVEN:
        kafka = load(path, {}).kafka.model_dump(mode="json", exclude_none=True)
        settings_file(tmp_path, kafka={**kafka, "replication": 3}, clickhouse=clickhouse)
        assert_told(run("worker", home=tmp_path), 1, "refused to create topic", "replication")
        path = settings_file(tmp_path, kafka=kafka, clickhouse=clickhouse)
    create_topics(client_config(bootstrap), {panes: 3})
    found = run("worker", home=tmp_path)
    assert_told(found, 1, f"topic {panes} has 3 partitions where 1 are wanted", "kafka.partitions")


def test_no_library_for_the_codec(
    bootstrap: str, clickhouse_server: ClickHouseServer, tmp_path: Path
) -> None:
    """Without it the worker does not start; where only the driver lacks it, the topic is named."""
    kafka = {"bootstrap": bootstrap, "session_timeout_s": 6.0, "heartbeat_s": 1.0}
    clickhouse = on_server(clickhouse_server)
    path = settings_file(tmp_path, kafka=kafka, clickhouse=clickhouse)
    migrated(clickhouse_server, clickhouse).close()
    absent = "import sys\nsys.modules['cramjam'] = None"
    assert_told(run("worker", home=tmp_path, prelude=absent), 1, "package cramjam", "pip install")
    topic = load(path, {}).kafka.requests[0].topic
    create_topics(client_config(bootstrap), {topic: 1})
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    producer.produce(topic, b'{"request_id": "1"}' * 200)
    producer.flush()
    found = run("worker", home=tmp_path, prelude="import aiokafka.codec as c\nc.cramjam = None")
    assert found[0] == 1, found[1]
    for said in (f"cannot read topic {topic}, partition 0", "lz4", "remedy: pip install"):
        assert said in found[1]


def test_a_full_disk(bootstrap: str, small_disk: Path, tmp_path: Path) -> None:
    """The worker names what could not be written, and that it is for want of space."""
    settings_file(tmp_path, kafka={"bootstrap": bootstrap}, data_dir=small_disk / "data")
    assert run("migrate", home=tmp_path)[0] == 0
    with (small_disk / "ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65_536))
        except OSError:
            pass
    assert_told(run("worker", home=tmp_path), 2, "No space left", "free space")


def test_a_directory_or_a_port_that_is_taken(
    bootstrap: str, clickhouse_server: ClickHouseServer, tmp_path: Path
) -> None:
    """The owner, or the port, and what to choose instead are named."""
    settings_file(tmp_path, kafka={"bootstrap": bootstrap})
    with DataDirectory(tmp_path / "data"):
        found = run("worker", home=tmp_path)
    assert_told(found, 2, f"is in use by process {os.getpid()}", "stop that process")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        clickhouse = on_server(clickhouse_server)
        migrated(clickhouse_server, clickhouse).close()
        settings_file(
            tmp_path,
            kafka={"bootstrap": bootstrap},
            clickhouse=clickhouse,
            web={"enabled": True, "port": port},
        )
        assert_told(run("worker", home=tmp_path), 2, f"web.port {port}", "its own web.port")


def test_an_authority_that_is_none(clickhouse_server: ClickHouseServer, tmp_path: Path) -> None:
    """A file of certificates that is missing, or holds none, is named with its setting."""
    clickhouse = on_server(clickhouse_server)
    (tmp_path / "none.pem").write_text("not a certificate")
    migrated(clickhouse_server, clickhouse).close()
    for name in ("none.pem", "missing.pem"):
        kafka = {"security_protocol": "SSL", "ssl_ca": str(tmp_path / name)}
        settings_file(tmp_path, kafka=kafka, clickhouse=clickhouse)
        assert_told(run("worker", home=tmp_path), 2, str(tmp_path / name), "kafka.ssl_ca")


@pytest.mark.thorough
def test_a_worker_ends_though_its_broker_is_gone(tmp_path: Path) -> None:
    """SIGTERM ends a worker that cannot say goodbye, with a word about it and status 1."""
    with EmbeddedBroker(log_path=tmp_path / "broker.log") as broker:
        quick = {"bootstrap": broker.bootstrap, "session_timeout_s": 3, "heartbeat_s": 0.5}
        config = settings_file(tmp_path, kafka=quick)
        assert run("migrate", "-c", str(config), home=tmp_path)[0] == 0
        process = start(["worker", "-c", str(config)], tmp_path)
        assert process.stderr is not None
        assert any("worker started" in line for line in iter(process.stderr.readline, ""))
    process.send_signal(signal.SIGTERM)
    status, said = ended(process)
    assert status == 1
    assert "the broker does not answer" in said
    assert len(said.splitlines()) < 200
