"""Anomalies of a worker that dies at any moment: each is told once, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiokafka.structs import RecordMetadata, TopicPartition
from requests_of import SECOND_NS, T0_NS
from stage_segments import second

from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.anomalies import Anomalies
from tailbudget.streams.model_states import Newest, part_of
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.owned_service import OwnedService, open_service

SLOW = range(120, 140)
ALL = range(165)


class DiedError(Exception):
    """The process ended here."""


@dataclass
class Broker:
    """What a broker has of the topics of alerts and models.

    Attributes:
        sent: topic, key and value.
        dies_at: the send of an alert with this number raises; 0 never does.
    """

    sent: list[tuple[str, bytes | None, bytes]] = field(default_factory=list)
    dies_at: int = 0

    async def send(
        self, topic: str, key: bytes | None, value: bytes, partition: int | None, *_: Any
    ) -> Any:
        """Keep a message, as a producer of Faust's does."""
        if topic == "alerts" and self.dies_at:
            self.dies_at -= 1
            if not self.dies_at:
                raise DiedError
        self.sent.append((topic, key, value))
        done: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        at = len(self.sent)
        where = TopicPartition(topic, partition or 0)
        done.set_result(RecordMetadata(topic, partition or 0, where, at, 0, 0, 0))
        return done

    async def read(self, partition: int) -> Mapping[str, bytes]:
        """Return the states, as a worker that starts reads them."""
        del partition
        newest = Newest()
        for topic, key, value in self.sent:
            if topic == "models" and (part := part_of(key, value)) is not None:
                newest.add(part)
        return newest.states()


@dataclass
class Owner:
    """A worker that has one service."""

    service: OwnedService
    now_ns: int = 0

    def owned(self, name: str) -> OwnedService | None:
        """Return the service."""
        return self.service if name == "chat" else None

    def event_ns(self, name: str) -> int | None:
        """Return event time."""
        del name
        return self.now_ns


@dataclass
class World:
    """What outlives a worker.

    Attributes:
        store: ClickHouse.
        broker: the broker.
        floor: offset of the panes topic from which a worker reads.
        settings: of all workers.
    """

    store: ClickHouse
    broker: Broker
    settings: Settings
    floor: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def worker(self) -> tuple[Anomalies, Owner]:
        """Start a worker that takes the service over."""
        outbox = Outbox(
            lambda: self.broker,
            partitions=lambda: 1,
            **{name: name for name in ("panes", "alerts", "dead_letters", "deploys", "models")},
        )
        service, _ = await open_service("chat", 0, self.settings, self.store, event_ns=T0_NS)
        owner = Owner(service)
        found = Anomalies(
            self.settings,
            store=self.store,
            states=self.broker,
            outbox=outbox,
            owner=owner,
            incarnation=1,
            turn=self.turn,
        )
        await found.open("chat", 0)
        return found, owner

    async def play(self, until: int, *, save_every: int) -> None:
        """Let one worker take the segments from the floor on up to one, and then vanish."""
        found, owner = await self.worker()
        for number in range(self.floor, until):
            found.take(second(number, 1.5 if number in SLOW else 1.0))
            owner.now_ns = T0_NS + (number + 1) * SECOND_NS
            await found.tick()
            if number % save_every == save_every - 1:
                await found.finish()
            floor = found.floor(0)
            self.floor = number + 1 if floor is None else floor

    def told(self) -> list[tuple[str, str]]:
        """Return stage and phase of all that ClickHouse has."""
        rows = self.store.query("SELECT stage, phase FROM anomalies FINAL ORDER BY at").rows
        return [(str(stage), str(phase)) for stage, phase in rows]

    def alerts(self) -> list[tuple[int, str]]:
        """Return number and state of all changes of the alert."""
        rows = self.store.query(
            "SELECT sequence, after FROM alert_changes FINAL WHERE alert = 'anomaly:prefill'"
            " ORDER BY sequence"
        ).rows
        return [(int(number), str(state)) for number, state in rows]


@pytest.fixture
def world(clickhouse: ClickHouse, tmp_path: Path) -> World:
    """An empty ClickHouse and an empty broker."""
    settings = Settings.model_validate({"data_dir": str(tmp_path), "web": {"enabled": False}})
    return World(clickhouse, Broker(), settings)


TOLD = [("prefill", "started"), ("prefill", "ended")]
MOVES = [(1, "firing"), (2, "resolved")]


@pytest.mark.parametrize("dies_after", [119, 121, 122, 124, 133, 143, 150])
@pytest.mark.parametrize("save_every", [7, 1000])
def test_a_kill_neither_repeats_nor_loses_an_anomaly(
    world: World, dies_after: int, save_every: int
) -> None:
    """Before, at and after its start and its end, however old the saved state is."""
    asyncio.run(world.play(dies_after, save_every=save_every))
    asyncio.run(world.play(ALL.stop, save_every=save_every))
    assert world.told() == TOLD
    assert world.alerts() == MOVES


@pytest.mark.parametrize("dies_at", [1, 2])
def test_a_kill_while_it_is_told(world: World, dies_at: int) -> None:
    """The state was saved and the alert was not sent: the next worker does the rest."""
    world.broker.dies_at = dies_at
    with pytest.raises(DiedError):
        asyncio.run(world.play(ALL.stop, save_every=1000))
    asyncio.run(world.play(ALL.stop, save_every=1000))
    assert world.told() == TOLD
    assert world.alerts() == MOVES


def test_what_no_state_has_holds_commits_back(world: World) -> None:
    """A segment is scored at once and saved later; until then the panes topic is read again."""

    async def play() -> None:
        found, owner = await world.worker()
        found.take(second(0))
        owner.now_ns = T0_NS + SECOND_NS
        await found.tick()
        assert found.floor(0) == 0
        assert found.floor(1) is None
        assert not found.forget("chat")
        await found.finish()
        assert found.floor(0) is None
        assert found.forget("chat")

    asyncio.run(play())


def test_scoring_waits_for_its_turn(world: World) -> None:
    """While summaries are made, which an alert waits for, nothing is scored."""

    async def play() -> None:
        found, owner = await world.worker()
        owner.now_ns = T0_NS + SECOND_NS
        found.take(second(0, 1.0))
        await world.turn.acquire()
        scoring = asyncio.create_task(found.tick())
        await asyncio.sleep(0.1)
        assert found.status()["scored_ns"] == {"chat": 0}
        world.turn.release()
        await scoring
        assert found.status()["scored_ns"]["chat"] > 0

    asyncio.run(play())


def test_models_and_cold_windows_are_described(world: World) -> None:
    """Once a minute of event time: what is expected of each stage, in words."""
    asyncio.run(world.play(100, save_every=1000))
    rows = world.store.query(
        "SELECT stage, cohort, state, terms, sigma FROM shape_models WHERE state = 'ready'"
    ).records()
    assert rows
    for row in rows:
        assert (row["stage"], row["cohort"]) == ("prefill", "route=a")
        assert "input_tokens" in " ".join(row["terms"])
        assert 0.05 < row["sigma"] < 0.2


def test_a_service_that_was_forgotten_is_known_when_it_comes_back(world: World) -> None:
    """What it had learnt is on the topic, however long it was silent."""

    async def play() -> None:
        found, owner = await world.worker()
        for number in range(60):
            found.take(second(number))
            owner.now_ns = T0_NS + (number + 1) * SECOND_NS
            await found.tick()
        await found.finish()
        scored = found.status()["scored_ns"]["chat"]
        assert found.forget("chat")
        await found.open("chat", 0)
        assert found.status()["scored_ns"]["chat"] == scored

    asyncio.run(play())
