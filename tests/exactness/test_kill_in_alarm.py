"""A worker dies by SIGKILL while a stage is alarmed; another goes on with the same anomaly."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from chat_receiver import ChatReceiver
from clickhouse_server import ClickHouseServer
from confluent_kafka import Producer
from fleet import BOOTSTRAP, Fleet, settings_file

from tailbudget.schemas.settings import load
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.embedded import free_port
from tailbudget.streams.faulty.generate import generate
from tailbudget.streams.faulty.records import frame, lines
from tailbudget.streams.faulty.scenarios import COVARIATES, FaultScenario
from tailbudget.streams.topics import ensure_topics

T0_S = 1_772_445_600
CHUNK_S = 10.0
PATIENCE_S = 120.0
FAULT = FaultScenario(duration_s=600.0, rate=40.0, seed=3, fault="dependency", effect=1.6)
SERVICE = {"covariates": list(COVARIATES), "cohort_dims": ["route"]}

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.thorough,
    pytest.mark.timeout(900),
    pytest.mark.skipif(BOOTSTRAP is None, reason="needs TAILBUDGET_TEST_BOOTSTRAP"),
]


class Fleeting:
    """Traffic that is sent bit by bit to workers that are killed meanwhile.

    Args:
        topic: where records go.
        store: what the workers write to.
        fleet: the workers.
    """

    def __init__(self, topic: str, store: ClickHouse, fleet: Fleet) -> None:
        self.store = store
        self.fleet = fleet
        self._topic = topic
        self._table: pl.DataFrame = frame(generate(FAULT), "chat", T0_S * 10**9)
        self._producer = Producer({"bootstrap.servers": BOOTSTRAP})
        self._sent = 0
        self._until_s = 0.0

    def play(self, until_s: float) -> None:
        """Send what completes until a time, no more than two chunks ahead of what is counted."""
        done_s = self._table["done_s"].to_numpy()
        while self._until_s < until_s:
            before, self._until_s = self._sent, min(self._until_s + CHUNK_S, until_s)
            self._sent = int(np.searchsorted(done_s, self._until_s))
            chunk = list(lines(self._table[before : self._sent]))
            if chunk:
                self._producer.produce(self._topic, b"\n".join(chunk), partition=0)
            assert self._producer.flush(60) == 0
            self._catch_up(0.9 * before)
            time.sleep(0.5)  # two ticks of scoring

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return [tuple(row) for row in self.store.query(sql).rows]

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"waited for {what}\n{self.fleet.logs()}"
            time.sleep(0.1)

    def _catch_up(self, records: float) -> None:
        self.wait_for(lambda: self._counted() >= records, "records to be counted")

    def _counted(self) -> int:
        sql = "SELECT sum(requests) FROM current_panes WHERE stage = 'total'"
        return int(self.query(sql)[0][0])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ClickHouseServer]:
    """A ClickHouse that several processes can reach."""
    with ClickHouseServer(tmp_path / "clickhouse") as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[ChatReceiver]:
    """A webhook that takes messages."""
    with ChatReceiver(free_port()) as made:
        made.open()
        yield made


def told(receiver: ChatReceiver) -> list[tuple[str, str, int]]:
    """Return alert, state and number of each change of an anomaly that the webhook took."""
    bodies = [one for body in receiver.taken for one in body.get("alerts", [body["alert"]])]
    return [(b["alert"], b["state"], b["sequence"]) for b in bodies if b["kind"] == "anomaly"]


def test_a_killed_worker_neither_repeats_nor_loses_an_anomaly(
    server: ClickHouseServer, receiver: ChatReceiver, tmp_path: Path
) -> None:
    """Both workers die within the alarm: one beginning, one end, one row of each."""
    url = f"json://127.0.0.1:{receiver.port}/hook"
    channel = {"name": "hook", "url": url, "picture": False, "per_minute": 600}
    config = settings_file(tmp_path, server, services={"chat": SERVICE}, chat=[channel])
    settings = load(config, {})
    ensure_topics(settings.kafka)
    first_s, end_s = min((o.start_s, o.end_s) for o in generate(FAULT).truth.onsets)
    changes = "SELECT stage, phase, toUnixTimestamp64Nano(started_at) FROM anomalies"
    with ExitStack() as stack:
        store = ClickHouse.open(server.target(settings.clickhouse.database))
        stack.callback(store.close)
        store.migrate()
        fleet = Fleet(config, tmp_path)
        stack.callback(fleet.stop)
        here = Fleeting(settings.kafka.requests[0].topic, store, fleet)
        here.play(first_s + 30)
        here.wait_for(lambda: here.query(changes), "the anomaly")
        noticed = "SELECT count() FROM alert_notices WHERE startsWith(alert, 'anomaly:')"
        here.wait_for(lambda: here.query(noticed)[0][0], "its notice")
        for which in (0, 1):  # One of them has the service: it dies at least once.
            fleet.kill(which)
            here.wait_for(fleet.ready, "both workers")
        here.play(end_s + 60)
        here.wait_for(lambda: any(row[1] == "ended" for row in here.query(changes)), "the end")
        here.wait_for(lambda: any(state == "resolved" for _, state, _ in told(receiver)), "news")
        time.sleep(3)  # a second message, were there one, would come within this
        rows, said = here.query(f"{changes} FINAL ORDER BY at"), told(receiver)
    assert {row[0] for row in rows} == {"retrieve"}
    assert max(Counter(row for row in rows if row[1] != "spread").values()) == 1
    # A stage may flicker; each of its anomalies begins and ends once, in the table and in chat.
    phases = {"started": "firing", "ended": "resolved"}
    moves = [phases[row[1]] for row in rows if row[1] in phases]
    assert moves[:2] == ["firing", "resolved"]
    assert [state for _, state, _ in said] == moves
    assert len({(alert, sequence) for alert, _, sequence in said}) == len(said)
