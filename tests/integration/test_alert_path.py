"""Alerts on their whole way: from requests on Kafka to messages at a webhook, and over restarts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pytest
import requests
from chat_receiver import ChatReceiver
from running_worker import RunningWorker, settings_for

from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.silences import Silence
from tailbudget.sinks.chat import open_channels
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.embedded import free_port

T0_MS = 1_772_445_600_000  # 2026-03-02T10:00:00Z
PER_S = 20
LATENCY: dict[str, Any] = {
    "name": "latency",
    "target_pct": 90,
    "threshold_ms": 100,
    "period": "1h",
    "burn": [{"window": "1m", "factor": 5}],
}
"""Fires when half of the last minute and of its last five seconds are bad."""

Start = Callable[[], RunningWorker]


@pytest.fixture
def receiver() -> Iterator[ChatReceiver]:
    """A webhook that takes messages."""
    with ChatReceiver(free_port()) as made:
        made.open()
        yield made


class Traffic:
    """Requests of one service, one after another in event time.

    Args:
        worker: whose topic they go to.
        at_s: seconds of event time since T0 at which they begin.
    """

    def __init__(self, worker: RunningWorker, at_s: int = 0) -> None:
        self.worker = worker
        self.at_s = at_s

    def send(self, seconds: int, total_ms: float, routes: int = 1) -> None:
        """Send so many seconds of requests of one latency, turn by turn of each route."""
        first = self.at_s * PER_S
        self.at_s += seconds
        self.worker.produce(
            [
                orjson.dumps(
                    {
                        "request_id": f"r{number}",
                        "timestamp": T0_MS + number * 1000 // PER_S,
                        "total_ms": total_ms,
                        "decode_ms": total_ms * 0.8,
                        "route": f"r{number % routes:02}",
                    }
                )
                for number in range(first, self.at_s * PER_S)
            ]
        )

    def settled(self) -> None:
        """Wait until ClickHouse has all of it."""
        wanted = self.at_s * PER_S
        self.worker.wait_for(lambda: self.worker.requests("chat") == wanted, f"{wanted} requests")


def configured(
    bootstrap: str, store: ClickHouse, path: Path, *objectives: dict[str, Any], **groups: Any
) -> Settings:
    """Return settings of a worker that judges a service by objectives."""
    stream = {"flush_s": 0.2, "tick_s": 0.1, "pane_s": 1, "idle_s": 60}
    services = {"chat": {"objectives": objectives}}
    return settings_for(bootstrap, store, path, stream=stream, services=services, **groups)


def channels(receiver: ChatReceiver) -> Any:
    """Return the webhook as the only channel; it hears of pages, not of regressions besides."""
    url = f"json://127.0.0.1:{receiver.port}/hook"
    hook = {"name": "hook", "url": url, "severities": ["page"]}
    return open_channels([ChatChannel.model_validate(hook)])


def changes(worker: RunningWorker) -> list[tuple[Any, ...]]:
    """Return the changes of alerts that ClickHouse has, in order, without regressions."""
    return worker.query(
        "SELECT alert, after, reason FROM alert_changes FINAL WHERE alert NOT LIKE 'anomaly:%'"
        " ORDER BY alert, at, sequence"
    )


def open_alerts(worker: RunningWorker) -> dict[str, str]:
    """Return state by name of the alerts that are not resolved."""
    found: dict[str, str] = worker.status()["audit"]["alerts"].get("chat", {})
    return found


def budget(worker: RunningWorker) -> tuple[Any, ...]:
    """Return the newest budget that ClickHouse has."""
    sql = "SELECT objective, total, bad, target_pct, status FROM budgets FINAL"
    return worker.query(f"{sql} WHERE service = 'chat' ORDER BY at DESC LIMIT 1")[0]


@pytest.mark.thorough
def test_an_incident_over_a_restart_is_two_messages(
    bootstrap: str, clickhouse: ClickHouse, receiver: ChatReceiver, tmp_path: Path
) -> None:
    """A restart in the middle repeats nothing and loses nothing; the end says time and cost."""
    settings = configured(bootstrap, clickhouse, tmp_path, LATENCY)
    with RunningWorker(settings, clickhouse, channels(receiver)) as worker:
        traffic = Traffic(worker)
        traffic.send(120, 50.0)
        traffic.send(40, 400.0)
        worker.wait_for(lambda: receiver.taken, "the page")
        traffic.settled()
    with RunningWorker(settings, clickhouse, channels(receiver)) as worker:
        traffic = Traffic(worker, at_s=traffic.at_s)
        traffic.send(20, 400.0)
        traffic.settled()
        traffic.send(60, 50.0)
        worker.wait_for(lambda: len(receiver.taken) == 2, "the recovery")
        traffic.settled()
        assert "slo:latency" not in open_alerts(worker)
        assert changes(worker) == [
            ("slo:latency", "firing", "condition_met"),
            ("slo:latency", "resolved", "condition_cleared"),
        ]
        kept = ("latency", 240 * PER_S, 60 * PER_S, 90.0, "resolved")
        worker.wait_for(lambda: budget(worker) == kept, "the budget")
    fired, over = receiver.taken
    assert receiver.alerts() == [("chat", "firing"), ("chat", "resolved")]
    assert fired["alert"]["alert_id"] == over["alert"]["alert_id"]
    for said in (
        "[FIRING page] chat slo:latency burns its error budget",
        "90 % of requests within 100 ms",
        "budget burns at",
        "of the error budget left",
        "Since 2026-03-02 10:02:00 UTC",
        "Look at request `r",
    ):
        assert said in fired["title"] + "\n" + fired["message"]
    told = r"It lasted [\d.]+ min, from 2026-03-02 10:02:00 UTC, and cost 1\d\.\d % of the error"
    assert re.search(told, over["message"])
    # A minute of bad requests, which an hour of such traffic allows six of.
    assert over["alert"]["budget_cost_pct"] == pytest.approx(100 / 6, rel=0.05)


def test_silence_freezes_an_alert_and_data_thaw_it(
    bootstrap: str, clickhouse: ClickHouse, receiver: ChatReceiver, tmp_path: Path
) -> None:
    """Case 32: without data it neither fires for ever nor counts as over; both are said once."""
    settings = configured(bootstrap, clickhouse, tmp_path, {**LATENCY, "no_data_s": 6})
    with RunningWorker(settings, clickhouse, channels(receiver)) as worker:
        traffic = Traffic(worker)
        traffic.send(60, 50.0)
        traffic.send(40, 400.0)
        worker.wait_for(lambda: len(receiver.taken) == 2, "the silence")
        assert open_alerts(worker)["slo:latency"] == "no_data"
        traffic.send(5, 400.0)
        worker.wait_for(lambda: len(receiver.taken) == 3, "that it goes on")
        traffic.send(40, 50.0)
        worker.wait_for(lambda: len(receiver.taken) == 4, "the recovery")
        said = changes(worker)
    assert [state for _, state in receiver.alerts()] == ["firing", "no_data", "firing", "resolved"]
    assert [reason for _, _, reason in said][:4] == [
        "condition_met", "no_data", "data_came_back", "condition_cleared",
    ]  # fmt: skip
    assert len({body["alert"]["alert_id"] for body in receiver.taken}) == 1
    assert "[NO DATA] chat slo:latency cannot be judged" in receiver.taken[1]["title"]


@pytest.mark.thorough
def test_a_restart_during_silence_loses_no_notice(
    bootstrap: str, clickhouse: ClickHouse, receiver: ChatReceiver, tmp_path: Path
) -> None:
    """A worker that never hears of the service says of its alert that there are no data."""
    settings = configured(bootstrap, clickhouse, tmp_path, {**LATENCY, "no_data_s": 8})
    with RunningWorker(settings, clickhouse, channels(receiver)) as worker:
        traffic = Traffic(worker)
        traffic.send(60, 50.0)
        traffic.send(40, 400.0)
        worker.wait_for(lambda: receiver.taken, "the page")
        traffic.settled()
    with RunningWorker(settings, clickhouse, channels(receiver)) as worker:
        worker.wait_for(lambda: len(receiver.taken) == 2, "the silence")
        assert worker.status()["audit"]["services"] == ["chat"]
        traffic = Traffic(worker, at_s=traffic.at_s)
        traffic.send(60, 50.0)
        worker.wait_for(lambda: len(receiver.taken) == 3, "the recovery")
        traffic.settled()
    assert [state for _, state in receiver.alerts()] == ["firing", "no_data", "resolved"]


def test_many_cohorts_are_one_message(
    bootstrap: str, clickhouse: ClickHouse, receiver: ChatReceiver, tmp_path: Path
) -> None:
    """Ten routes that break at once are told together, each with its cohort."""
    routes = [f"r{number:02}" for number in range(10)]
    objectives = [{**LATENCY, "name": name, "cohort": {"route": name}} for name in routes]
    settings = configured(bootstrap, clickhouse, tmp_path, *objectives)
    with RunningWorker(settings, clickhouse, channels(receiver)) as worker:
        traffic = Traffic(worker)
        traffic.send(120, 50.0, routes=10)
        traffic.settled()
        traffic.send(60, 400.0, routes=10)
        worker.wait_for(lambda: receiver.taken, "the page")
        worker.wait_for(lambda: worker.status()["chat"]["delivered"] == 10, "all of it")
    (message,) = receiver.taken
    assert message["title"] == "[FIRING] chat: 10 alerts"
    told = sorted((one["alert"], one["cohort"]) for one in message["alerts"])
    assert told == [(f"slo:{name}", f"route={name}") for name in routes]


def test_a_silenced_alert_is_kept_and_told_afterwards(
    bootstrap: str, clickhouse: ClickHouse, receiver: ChatReceiver, tmp_path: Path
) -> None:
    """While a person does not want to hear of it nothing is sent; when that ends it is."""
    port = free_port()
    settings = configured(
        bootstrap, clickhouse, tmp_path, LATENCY, web={"enabled": True, "port": port}
    )
    now_ns = time.time_ns()
    silence = Silence("a1", "chat", "slo:latency", now_ns, now_ns + 3600 * 10**9, "load test", 1)
    url = f"http://127.0.0.1:{port}/silences"
    with RunningWorker(settings, clickhouse, channels(receiver)) as worker:
        refused = requests.post(url, data=orjson.dumps(asdict(silence)), timeout=10)
        assert refused.status_code == 400
        assert requests.post(url, json=asdict(silence), timeout=10).ok
        worker.wait_for(
            lambda: worker.status()["chat"]["silences"] == ["chat/slo:latency"], "the silence"
        )
        traffic = Traffic(worker)
        traffic.send(60, 50.0)
        traffic.send(60, 400.0)
        traffic.settled()
        worker.wait_for(lambda: changes(worker), "the mute")
        assert changes(worker) == [("slo:latency", "muted", "muted")]
        assert receiver.taken == []
        ended = {**asdict(silence), "ends_ns": now_ns, "version": 2}
        assert requests.post(url, json=ended, timeout=10).ok
        worker.wait_for(lambda: receiver.taken, "what was held back")
        assert changes(worker)[1:] == [("slo:latency", "firing", "no_longer_muted")]
    assert receiver.alerts() == [("chat", "firing")]
