"""What a worker depends on goes away and comes back: nothing is lost, doubled or unbounded."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from chat_receiver import HANG, ChatReceiver
from clickhouse_server import ClickHouseServer
from clickhouse_store import fresh_store
from running_worker import RunningWorker, settings_for

from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ClickHouseError
from tailbudget.sinks.chat import FakeChat, open_channels
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.delivery.agent import Channel
from tailbudget.streams.embedded import free_port

T0_MS = 1_772_445_600_000  # 2026-03-02T10:00:00Z
pytestmark = pytest.mark.thorough

DAY_MS = 86_400_000
BOUND = 4096
QUICK: dict[str, Any] = {"flush_s": 0.2, "tick_s": 0.1}
SERVICES = ("a", "b", "c", "d", "e", "f", "g")
SLO = {"slo": {"p50_ms": 100.0}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ClickHouseServer]:
    """A ClickHouse server that may be stopped."""
    with ClickHouseServer(tmp_path / "clickhouse") as running:
        yield running


@pytest.fixture
def remote(server: ClickHouseServer) -> Iterator[ClickHouse]:
    """A migrated database on it."""
    with fresh_store(server.target()) as store:
        yield store


@pytest.fixture
def receiver() -> Iterator[ChatReceiver]:
    """A webhook that is down until it is opened."""
    with ChatReceiver(free_port()) as made:
        yield made


def requests(
    first: int,
    count: int,
    *,
    at_ms: int = T0_MS,
    step_ms: int = 1,
    total_ms: float = 50.0,
    service: str = "chat",
) -> list[bytes]:
    """Return requests that take most of their time in the queue."""
    return [
        orjson.dumps(
            {
                "request_id": f"{service}-{number}",
                "service": service,
                "timestamp": at_ms + place * step_ms,
                "total_ms": total_ms + place % 20 * 5,
                "queue_ms": total_ms * 0.7 + place % 20 * 5,
                "decode_ms": total_ms * 0.3,
            }
        )
        for place, number in enumerate(range(first, first + count))
    ]


def read(worker: RunningWorker) -> int:
    """Return how many messages ingest has read, as they begin at offset 0."""
    return sum(int(source["read"]) for source in worker.status()["ingest"].values())


def alert_rows(worker: RunningWorker) -> list[str]:
    """Return the services of the rows in `alerts`, sorted."""
    return [row[0] for row in worker.query("SELECT service FROM alerts FINAL ORDER BY service")]


def _has_read(worker: RunningWorker, count: int) -> bool:
    return read(worker) == count


def pending(worker: RunningWorker) -> int:
    """Return the bytes that wait for ClickHouse."""
    return int(worker.status()["audit"]["pending_bytes"])


def settled(worker: RunningWorker, count: int, service: str = "chat") -> None:
    """Wait until ClickHouse has so many requests of a service."""
    worker.wait_for(lambda: worker.requests(service) == count, f"{count} requests of {service}")


def test_clickhouse_goes_away_and_comes_back(
    bootstrap: str, server: ClickHouseServer, remote: ClickHouse, tmp_path: Path
) -> None:
    """Consuming goes on up to its bound, pauses, and catches up without loss or duplicate."""
    stream = {**QUICK, "max_pending_mb": BOUND / 2**20}
    settings = settings_for(bootstrap, remote, tmp_path, stream=stream)
    with RunningWorker(settings, remote) as worker:
        worker.produce(requests(0, 200))
        settled(worker, 200)
        server.stop()
        sent = 200

        def more_until_full() -> bool:
            nonlocal sent
            worker.produce(requests(sent, 100, at_ms=T0_MS + sent), partition=sent // 100 % 2)
            sent += 100
            return pending(worker) > BOUND

        worker.wait_for(more_until_full, "the bound")
        most = pending(worker)
        for _ in range(8):
            for partition in (0, 1):
                worker.produce(requests(sent, 100, at_ms=T0_MS + sent), partition=partition)
                sent += 100
            worker.wait_for(partial(_has_read, worker, sent), "ingest, which goes on")
            most = max(most, pending(worker))
        published = sum(len(value) for _, value in worker.read(settings.kafka.panes_topic))
        assert BOUND < most < published / 2
        server.start()
        settled(worker, sent)
        worker.wait_for(lambda: pending(worker) == 0, "nothing to be pending")
        worker.stop()
        assert worker.requests("chat") == sent


def test_too_many_parts_over_120_days(
    bootstrap: str, server: ClickHouseServer, remote: ClickHouse, tmp_path: Path
) -> None:
    """2,000 requests over 120 days, and one refusal with code 252: bounded parts, each once."""
    settings = settings_for(bootstrap, remote, tmp_path, stream={"flush_s": 1.0})
    with RunningWorker(settings, remote) as worker:
        server.fail_inserts([(500, 252)], table="panes")
        worker.produce(requests(0, 2000, step_ms=120 * DAY_MS // 2000))
        settled(worker, 2000)
        inserts = [sql for sql in server.inserts() if "panes" in sql]
        assert 2 <= len(inserts) <= 30
        parts = worker.query(
            "SELECT count() FROM system.parts WHERE database = currentDatabase()"
            " AND table = 'panes' AND active"
        )
        assert int(parts[0][0]) <= 60
        assert worker.ledger("chat")["accepted"] == 2000


def test_the_engines_own_refusal_of_parts(
    bootstrap: str, clickhouse: ClickHouse, tmp_path: Path
) -> None:
    """The real refusal is tried again until it ends, and what was refused is written once."""
    settings = settings_for(bootstrap, clickhouse, tmp_path, stream=QUICK)

    def command(sql: str) -> None:
        clickhouse._writer.attempt(lambda client: client.command(sql))

    with RunningWorker(settings, clickhouse) as worker:
        worker.produce(requests(0, 10))
        settled(worker, 10)
        command("SYSTEM STOP MERGES panes")
        command(
            "ALTER TABLE panes MODIFY SETTING parts_to_delay_insert = 1, parts_to_throw_insert = 1"
        )
        with pytest.raises(ClickHouseError, match="252"):
            clickhouse.write_panes(
                list(clickhouse.read_panes("chat", [T0_MS * 1_000_000]).values())
            )
        worker.produce(requests(10, 10, at_ms=T0_MS + 1000))
        worker.wait_for(lambda: pending(worker) > 0, "the refused write")
        assert worker.requests("chat") == 10
        command("ALTER TABLE panes RESET SETTING parts_to_delay_insert, parts_to_throw_insert")
        settled(worker, 20)
        command("SYSTEM START MERGES panes")


def test_chat_is_down_and_nothing_else_waits(
    bootstrap: str, clickhouse: ClickHouse, receiver: ChatReceiver, tmp_path: Path
) -> None:
    """Chat is down, then answers 500, 429 and never: each alert arrives once, all else goes on."""
    channel = ChatChannel.model_validate(
        {"name": "hook", "url": f"json://127.0.0.1:{receiver.port}/hook"}
    )
    settings = settings_for(
        bootstrap, clickhouse, tmp_path, stream=QUICK, services=dict.fromkeys(SERVICES, SLO)
    )
    with RunningWorker(settings, clickhouse, open_channels([channel])) as worker:
        for place, service in enumerate(SERVICES):
            # One poll of the alerts topic each, more than may wait for an agent.
            worker.produce(requests(0, 40, total_ms=500.0, service=service), partition=place % 2)
            settled(worker, 40, service)
        worker.produce(requests(0, 30))
        settled(worker, 30)
        assert receiver.taken == []
        for failure in ((500, {}), (429, {"Retry-After": "1"}), (HANG, {})):
            receiver.answers += [(200, {}), failure]
        receiver.open()
        worker.wait_for(lambda: len(receiver.taken) == len(SERVICES), "all alerts")
        assert sorted(receiver.alerts()) == [(service, "firing") for service in SERVICES]
        assert len(receiver.refused) == 3
        worker.wait_for(
            lambda: worker.status()["chat"]["delivered"] == len(SERVICES), "the last answer"
        )
        assert worker.status()["chat"]["undelivered"] == 0
        # The row is written after the answer, so that a worker that dies between tells it again.
        worker.wait_for(lambda: len(alert_rows(worker)) >= len(SERVICES), "the last row")
        assert alert_rows(worker) == list(SERVICES)
        assert len(receiver.taken) == len(SERVICES)


def test_breach_and_recovery_reach_a_webhook(
    bootstrap: str, clickhouse: ClickHouse, receiver: ChatReceiver, tmp_path: Path
) -> None:
    """Both messages say service, percentile, measured, SLO, tail driver and link."""
    receiver.open()
    channel = ChatChannel.model_validate(
        {"name": "hook", "url": f"json://127.0.0.1:{receiver.port}/hook"}
    )
    port = free_port()
    settings = settings_for(
        bootstrap,
        clickhouse,
        tmp_path,
        stream=QUICK,
        services={"chat": SLO},
        web={"enabled": True, "port": port},
    )
    with RunningWorker(settings, clickhouse, open_channels([channel])) as worker:
        worker.produce(requests(0, 100, total_ms=500.0))
        worker.wait_for(lambda: receiver.taken, "the breach")
        fast = requests(100, 3000, at_ms=T0_MS + 70_000, step_ms=20)
        worker.produce(fast)
        worker.wait_for(lambda: len(receiver.taken) == 2, "the recovery")
        breach, recovery = receiver.taken
        assert receiver.alerts() == [("chat", "firing"), ("chat", "resolved")]
        assert breach["alert"]["alert_id"] == recovery["alert"]["alert_id"]
        _assert_told(breach, measured_ms=545.0, driver="queue")
        _assert_told(recovery, measured_ms=95.0, driver=None)
        link = breach["alert"]["link"]
        assert link == f"http://127.0.0.1:{port}/services/chat"
        worker.wait_for(lambda: worker.query("SELECT 1 FROM audits LIMIT 1"), "an audit")
        with urllib.request.urlopen(link, timeout=10) as answer:  # noqa: S310
            assert "60" in orjson.loads(answer.read())


def _assert_told(message: dict[str, Any], *, measured_ms: float, driver: str | None) -> None:
    alert, text = message["alert"], message["title"] + message["message"]
    assert (alert["service"], alert["alert"], alert["slo_ms"]) == ("chat", "p50", 100.0)
    assert alert["measured_ms"] == pytest.approx(measured_ms, rel=0.01)
    assert driver in {None, alert["tail_driver"]}
    for said in ("chat", "p50", "SLO 100 ms", alert["tail_driver"], alert["link"]):
        assert said in text
    assert f"{alert['measured_ms']:.3g} ms" in text


def test_an_orderly_end_leaves_nothing_behind(
    bootstrap: str, clickhouse: ClickHouse, tmp_path: Path
) -> None:
    """All that was read is in ClickHouse after the end, and the next worker adds none of it."""
    settings = settings_for(
        bootstrap, clickhouse, tmp_path, stream={"flush_s": 60.0, "tick_s": 10.0}
    )
    with RunningWorker(settings, clickhouse) as worker:
        for partition in (0, 1):
            worker.produce(requests(partition * 3000, 3000), partition=partition)
        worker.wait_for(lambda: read(worker) == 6000, "all to be read")
        worker.stop()
        assert worker.failure is None
        assert worker.requests("chat") == 6000
        assert [worker.committed(worker.topic, partition) for partition in (0, 1)] == [3000, 3000]
    quick = settings.model_copy(update={"stream": settings.stream.model_copy(update=QUICK)})
    with RunningWorker(quick, clickhouse) as worker:
        worker.produce(requests(6000, 10))
        settled(worker, 6010)
        worker.stop()
        assert worker.requests("chat") == 6010


def test_a_restart_repeats_no_alert(bootstrap: str, clickhouse: ClickHouse, tmp_path: Path) -> None:
    """A breach that was told is not told again; its end is, once."""
    settings = settings_for(bootstrap, clickhouse, tmp_path, stream=QUICK, services={"chat": SLO})
    first, second = FakeChat(), FakeChat()
    with RunningWorker(settings, clickhouse, _channels(first)) as worker:
        worker.produce(requests(0, 100, total_ms=500.0))
        worker.wait_for(lambda: first.sent, "the breach")
        worker.wait_for(lambda: worker.query("SELECT 1 FROM alerts"), "its row")
        settled(worker, 100)
    with RunningWorker(settings, clickhouse, _channels(second)) as worker:
        worker.produce(requests(100, 100, at_ms=T0_MS + 1000, total_ms=500.0))
        settled(worker, 200)
        worker.produce(requests(200, 3000, at_ms=T0_MS + 70_000, step_ms=20))
        worker.wait_for(lambda: second.sent, "the recovery")
        settled(worker, 3200)
    assert [message.state for message in first.sent] == ["firing"]
    assert [message.state for message in second.sent] == ["resolved"]
    assert first.sent[0].alert_id == second.sent[0].alert_id


def _channels(chat: FakeChat) -> Sequence[Channel]:
    return [(ChatChannel.model_validate({"name": "fake", "url": "json://nowhere"}), chat)]
