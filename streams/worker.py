"""A worker: the Faust app with its agents, the tables behind it, and an orderly start and end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import structlog
from aiokafka.errors import KafkaError
from faust.exceptions import ConsumerNotStarted
from faust.types import TP

from tailbudget.schemas.errors import BrokerError, UnavailableError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.agents.audit import Audit
from tailbudget.streams.agents.deploys import DEPLOYS
from tailbudget.streams.agents.events import Events
from tailbudget.streams.agents.ingest import Ingest
from tailbudget.streams.agents.signals import SIGNALS
from tailbudget.streams.anomalies import Anomalies
from tailbudget.streams.app import App, create_app
from tailbudget.streams.chores import Chore, Chores
from tailbudget.streams.connecting import left
from tailbudget.streams.delivery.agent import Channel, Delivery
from tailbudget.streams.delivery.change_split import ChangeSplits
from tailbudget.streams.held_positions import HeldPositions
from tailbudget.streams.http import Http
from tailbudget.streams.incarnations import incarnations
from tailbudget.streams.kafka import admin, kafka_config
from tailbudget.streams.memory import TRIM_S, give_back
from tailbudget.streams.model_states import ModelStates
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.owned import Owned
from tailbudget.streams.rolling_reports import RollingReports
from tailbudget.streams.rules import rules
from tailbudget.streams.silences import REFRESH_S, Silences
from tailbudget.streams.sources import decoder
from tailbudget.streams.stalls import StallGuard
from tailbudget.streams.topics import ensure_topics

log = structlog.get_logger()

JUDGE_S: Final = 0.02
"""Interval of judging: the most that a verdict waits for the next round."""

REPORT_S: Final = 5.0
"""Interval of looking for full reports that are due."""

WAKE_S: Final = 1.0
"""Interval of looking whether an assignment brought services that are silent."""

LEAVE_S: Final = 10.0
"""Seconds that Faust may take to leave a group; without a broker it would take for ever."""

UNSTALL_S: Final = 1.0
"""Interval of looking for partitions that the embedded broker no longer delivers."""

STOP_S: Final = 20.0
"""Seconds that an orderly end may take before the worker ends as it is; nothing is lost then."""


class Worker:
    """One worker of the consumer group.

    Attributes:
        settings: what it was started with.
        app: the Faust app.
        http: the HTTP port; None when it is disabled.
        stuck: Faust could not take its leave of the broker, and never will.
    """

    def __init__(self, settings: Settings, store: ClickHouse, channels: Sequence[Channel]) -> None:
        self.settings = settings
        self.http: Http | None = None
        self.stuck = False
        self._store = store
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        ensure_topics(settings.kafka)
        lives = incarnations(settings.kafka, store)
        self.app: App = create_app(settings.kafka, settings.data_dir)
        turn = asyncio.Lock()
        self._ingest = Ingest(
            settings,
            consumer=self._consumer,
            outbox=self._outbox(),
            decoders={
                entry.topic: partial(decoder, entry.format, rules(settings, entry))
                for entry in settings.kafka.requests
            },
            incarnations=lives,
            positions=HeldPositions(admin(kafka_config(settings.kafka)), settings.kafka.group),
            turn=turn,
        )
        self._owned = Owned(settings.stream)
        self._anomalies = Anomalies(
            settings,
            store=store,
            states=ModelStates(kafka_config(settings.kafka), settings.kafka.models_topic),
            outbox=self._outbox(),
            owner=self._owned,
            incarnation=lives[settings.kafka.panes_topic],
            turn=turn,
        )
        self._reports = RollingReports(settings, store, self._owned.settled)
        self._silences = Silences(store)
        self._audit = Audit(
            settings,
            store=store,
            consumer=self._consumer,
            outbox=self._outbox(),
            incarnation=lives[settings.kafka.panes_topic],
            owned=self._owned,
            anomalies=self._anomalies,
            silences=self._silences,
            report=self._reports.newest,
        )
        self._chores = Chores(self._failed)
        self._delivery = Delivery(
            channels,
            store,
            self._consumer,
            spawn=self._chores.spawn,
            split=ChangeSplits(settings, store),
        )
        self._deploys = Events(DEPLOYS, store.write_deploys, self._consumer)
        self._signals = Events(SIGNALS, store.write_signals, self._consumer)
        self._stalls = StallGuard(self._seek)
        self._running = False
        self._add_agents()

    async def start(self) -> None:
        """Join the group and serve.

        Raises:
            BrokerError: the broker went away meanwhile.
            ConfigError: the HTTP port is taken.
        """
        if self.settings.web.enabled:
            self.http = Http(self.settings, self._store, self.status)
            await self.http.start()
        await self.app.start()
        self._running = True
        every: list[Chore] = [
            (self.settings.stream.tick_s, self._ingest.tick),
            (JUDGE_S, self._audit.judge),
            (self.settings.stream.tick_s, self._anomalies.tick),
            (self.settings.stream.flush_s, self._audit.flush),
            (WAKE_S, self._audit.wake),
            (REPORT_S, self._reports.draw),
            (REFRESH_S, self._silences.refresh),
            (TRIM_S, give_back),
        ]
        if self.settings.kafka.contiguous:
            every.append((UNSTALL_S, self._unstall))
        self._chores.start(every)
        log.info("worker started", group=self.settings.kafka.group)

    async def stop(self) -> None:
        """End in order: send and commit what was read, write what was merged, leave the group."""
        if await self._chores.pause(STOP_S) and self.app.failure is None:
            await self._flush()
        await self._delivery.stop()
        try:
            await asyncio.wait_for(asyncio.shield(self.app.stop()), LEAVE_S)
        except TimeoutError:
            self.stuck = True
        if self.http is not None:
            await self.http.stop()
        log.info("worker stopped")

    async def run_until(self, stop: asyncio.Event) -> None:
        """Start, serve until `stop` is set or the app fails, and end in order.

        Raises:
            BrokerError: the broker does not answer, or the group does not take us.
            BaseException: what else made the app fail.
        """
        # Faust's own start waits for an assignment, which a group that refuses us never gives.
        starting = self._chores.spawn(self.start())
        try:
            while not stop.is_set() and self._well():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), 0.1)
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self.stop()
        if isinstance(self.app.failure, KafkaError) or not (stop.is_set() or self.app.failure):
            cause = self.app.failure or self.app.crash_reason
            raise left(self.settings.kafka, cause) from cause
        if self.app.failure is not None:
            raise self.app.failure

    def _well(self) -> bool:
        self.app.failure = self.app.failure or self.app.consumer.refusal()
        return self.app.failure is None and not self.app.should_stop

    def status(self) -> dict[str, Any]:
        """Return what `/status` tells."""
        return {
            "healthy": bool(self.app.started and self._assigned()),
            "pid": os.getpid(),
            "assigned": sorted(f"{tp.topic}:{tp.partition}" for tp in self._assigned()),
            "panes_topic": self.settings.kafka.panes_topic,
            "alerts_topic": self.settings.kafka.alerts_topic,
            "ingest": self._ingest.status(),
            "records": dict(self._ingest.records),
            "dead_letters": dict(self._ingest.dead_letters),
            "undecoded": self._ingest.waiting,
            "audit": self._audit.status() | self._reports.status() | self._anomalies.status(),
            "events_rejected": {
                self.settings.kafka.deploys_topic: self._deploys.rejected,
                self.settings.kafka.signals_topic: self._signals.rejected,
            },
            "verdicts": self._audit.verdicts.current(self._owned.services, time.monotonic()),
            "flushes": {
                "ingest": self._ingest.flushes.status(),
                "audit": self._audit.flushes.status(),
            },
            "chat": {
                "delivered": self._delivery.delivered,
                "undelivered": self._delivery.undelivered,
                "waiting": self._delivery.waiting,
                "foreign": self._delivery.foreign,
                "silences": self._silences.running(),
            },
        }

    def _assigned(self) -> set[TP]:
        try:
            return set(self.app.consumer.assignment()) if self._running else set()
        except ConsumerNotStarted:
            return set()

    def _consumer(self) -> Any:
        return self.app.consumer

    def _outbox(self) -> Outbox:
        kafka = self.settings.kafka
        return Outbox(
            lambda: self.app.producer,
            panes=kafka.panes_topic,
            alerts=kafka.alerts_topic,
            dead_letters=kafka.dead_letters_topic,
            deploys=kafka.deploys_topic,
            models=kafka.models_topic,
            partitions=lambda: kafka.partitions,
        )

    def _add_agents(self) -> None:
        kafka = self.settings.kafka
        requests = tuple(entry.topic for entry in kafka.requests)
        self.app.add_agent("ingest", requests, self._ingest.run)
        self.app.add_agent("audit", (kafka.panes_topic,), self._audit.run)
        self.app.add_agent("deploys", (kafka.deploys_topic,), self._deploys.run)
        self.app.add_agent("signals", (kafka.signals_topic,), self._signals.run)
        self.app.add_agent("notify", (kafka.alerts_topic,), self._delivery.run)
        self.app.on_partitions_revoked.connect(self._revoked)
        self.app.on_partitions_assigned.connect(self._assigned_anew)

    async def _revoked(self, app: App, revoked: set[TP], **_: Any) -> None:
        del app
        with contextlib.suppress(BrokerError):
            await self._ingest.flush()
        self._ingest.revoke()
        self._audit.revoke()
        self._delivery.revoke()
        self.app.consumer.forget(revoked)

    async def _assigned_anew(self, app: App, assigned: set[TP], **_: Any) -> None:
        kafka = self.settings.kafka
        requests = {entry.topic for entry in kafka.requests}
        self._audit.assign(tp for tp in assigned if tp.topic == kafka.panes_topic)
        sources = [tp for tp in assigned if tp.topic in requests]
        await self._ingest.assign(sources, app.consumer_generation_id)

    async def _flush(self) -> None:
        """Send and commit what was read, and write what that comes to, as far as it is ours."""
        with contextlib.suppress(TimeoutError, UnavailableError):
            async with asyncio.timeout(STOP_S):
                await self._audit.reach(await self._ingest.finish())
                await self._anomalies.finish()
                await self._audit.flush()

    async def _unstall(self) -> None:
        await self._stalls.look(self._owned.standings(self._ingest.reached))

    async def _seek(self, tp: TP, offset: int) -> None:
        await self.app.consumer.seek(tp, offset)

    def _failed(self, error: BaseException) -> None:
        self.app.failure = self.app.failure or error
