"""Everything on one machine: embedded broker and ClickHouse, one worker, a simulated service."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

import structlog
from pydantic import SecretStr
from rich.console import Console

from tailbudget.schemas.connections import ChatChannel, ClickHouseSettings
from tailbudget.schemas.errors import BrokerError
from tailbudget.schemas.services import ServiceSettings
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.slo import SloTarget
from tailbudget.sinks.chat import open_channels
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams import logs, simulate
from tailbudget.streams.data_directory import DataDirectory
from tailbudget.streams.database import open_database
from tailbudget.streams.embedded import EmbeddedBroker, free_port
from tailbudget.streams.faulty.scenarios import COVARIATES
from tailbudget.streams.kafka import kafka_config
from tailbudget.streams.narrator import Narrator
from tailbudget.streams.scenario import Scenario, demonstration
from tailbudget.streams.serve import serve
from tailbudget.streams.topics import ensure_topics
from tailbudget.streams.traffic import ScenarioTraffic
from tailbudget.streams.worker import Worker

log = structlog.get_logger()

SERVICE: Final = "chat"
TARGET: Final = SloTarget(p50_ms=400, p95_ms=800, p99_ms=1200)
SCENARIO_TARGET: Final = SloTarget(p50_ms=6000, p95_ms=20_000, p99_ms=60_000)
FAULT_AFTER_S: Final = 60.0
FAULT_FOR_S: Final = 20.0
EVERY_S: Final = 1.0
"""How often we look for new rolling percentiles; there are some once a pane."""

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run(
    settings: Settings,
    *,
    for_s: float | None,
    data: Path | None,
    rate: float,
    played: simulate.Played | None = None,
) -> None:
    """Run the whole stack until `for_s` seconds are over, or until SIGINT or SIGTERM.

    Args:
        settings: pane length, SLOs, chat channels and the like; where broker and ClickHouse are
            is decided here.
        for_s: seconds; None runs until a signal.
        data: directory to keep; None uses one that is removed at the end.
        rate: requests a second of the simulated service.
        played: what is simulated instead of the demonstration.

    Raises:
        ConfigError: another process uses the directory.
        BrokerError: the embedded broker does not start.
    """
    logs.set_up("warning" if settings.log_level == "info" else settings.log_level)
    console = Console(highlight=False)
    with (
        _directory(data) as path,
        DataDirectory(path) as directory,
        EmbeddedBroker(log_path=path / "broker.log") as broker,
        _port(settings) as port,
    ):
        fit = settings if played is None else _for_scenarios(settings)
        chosen = embedded_settings(fit, path, broker.bootstrap, port)
        with contextlib.closing(open_database(chosen.clickhouse, create=True)) as store:
            store.migrate(chosen.clickhouse.ttl_days)
            directory.announce(host=chosen.web.host, port=port, bootstrap=broker.bootstrap)
            narrator = Narrator(console, store, SERVICE)
            narrator.welcome(chosen, path, kept=data is not None)
            stack = _Stack(chosen, store, narrator, broker)
            shown = played or ScenarioTraffic(_demonstration(rate))
            asyncio.run(_serve(stack, for_s=for_s, played=shown))
            narrator.farewell(path, kept=data is not None)


def _demonstration(rate: float) -> Scenario:
    return demonstration(
        service=SERVICE, rate=rate, fault_after_s=FAULT_AFTER_S, fault_for_s=FAULT_FOR_S
    )


def _for_scenarios(settings: Settings) -> Settings:
    """Return the settings with what the requests of scenarios tell, and a target that they meet."""
    own = settings.services.get(SERVICE, ServiceSettings())
    if own.over(settings.defaults).slo is None:
        own = own.model_copy(update={"slo": SCENARIO_TARGET})
    if "covariates" not in own.model_fields_set:
        own = own.model_copy(update={"covariates": COVARIATES, "cohort_dims": ("route",)})
    return settings.model_copy(update={"services": {**settings.services, SERVICE: own}})


def embedded_settings(settings: Settings, path: Path, bootstrap: str, port: int) -> Settings:
    """Return the settings with the embedded broker and engine put in, and a target to miss."""
    kafka = settings.kafka.model_copy(
        update={
            "bootstrap": bootstrap,
            "security_protocol": "PLAINTEXT",
            "sasl_mechanism": None,
            "sasl_username": None,
            "sasl_password": None,
            "ssl_ca": None,
            "replication": 1,
            # The broker holds joins back for half a session; see docs/embedded.md.
            "session_timeout_s": 3.0,
            "heartbeat_s": 0.5,
            "contiguous": True,
            "incarnation": None,
        }
    )
    own = settings.services.get(SERVICE, ServiceSettings())
    if own.over(settings.defaults).slo is None:
        own = own.model_copy(update={"slo": TARGET})
    return settings.model_copy(
        update={
            "kafka": kafka,
            "clickhouse": ClickHouseSettings(
                interface="chdb", path=path / "clickhouse", ttl_days=settings.clickhouse.ttl_days
            ),
            "services": {**settings.services, SERVICE: own},
            "web": settings.web.model_copy(update={"port": port, "enabled": True}),
            "data_dir": path,
        }
    )


@dataclass(frozen=True, slots=True)
class _Stack:
    settings: Settings
    store: ClickHouse
    narrator: Narrator
    broker: EmbeddedBroker


async def _serve(stack: _Stack, *, for_s: float | None, played: simulate.Played) -> None:
    stop, quiet = asyncio.Event(), Event()
    settings, narrator = stack.settings, stack.narrator
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, _end, stop)
    everyone = ChatChannel(name="console", url=SecretStr("console://here"))
    channels = [*open_channels(settings.chat), (everyone, narrator)]
    worker = Worker(settings, stack.store, channels)
    simulation = asyncio.create_task(_simulate(settings, narrator, quiet, played))
    reporting = asyncio.create_task(_report(narrator))
    watching = asyncio.create_task(_watch(stack.broker, stop))
    if for_s is not None:
        loop.call_later(for_s, stop.set)
    try:
        await serve(worker, stop)
    finally:
        quiet.set()
        reporting.cancel()
        watching.cancel()
        await asyncio.gather(simulation, reporting, watching, return_exceptions=True)
    if not stack.broker.alive():
        raise BrokerError(
            "the embedded broker has ended",
            remedy=f"read {stack.broker.log_path}; what was written is kept, so start again",
        )


def _end(stop: asyncio.Event) -> None:
    """End in order; a signal that comes now ends at once."""
    stop.set()
    for number in _SIGNALS:
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)


async def _watch(broker: EmbeddedBroker, stop: asyncio.Event) -> None:
    """End all when the broker ends: it keeps its log in memory, so there is nothing to wait for."""
    while broker.alive():  # noqa: ASYNC110 (a process tells nobody that it ends)
        await asyncio.sleep(EVERY_S)
    _end(stop)
    log.error("the embedded broker has ended", remedy="Ctrl-C ends at once what still waits for it")
    # The libraries would tell of each try to reach it.
    logging.disable(logging.CRITICAL)


async def _simulate(
    settings: Settings, narrator: Narrator, quiet: Event, played: simulate.Played
) -> None:
    kafka = settings.kafka
    topics = simulate.Topics(kafka.requests[0].topic, kafka.deploys_topic)
    await asyncio.to_thread(ensure_topics, kafka)
    await asyncio.to_thread(
        simulate.run,
        kafka_config(kafka),
        played,
        topics,
        pace=simulate.Pace(wait=quiet.wait),
        report=narrator.happened,
    )


async def _report(narrator: Narrator) -> None:
    while True:
        await asyncio.sleep(EVERY_S)
        await asyncio.to_thread(narrator.percentiles)
        await asyncio.to_thread(narrator.regressions)


@contextlib.contextmanager
def _directory(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="tailbudget-", ignore_cleanup_errors=True) as path:
        yield Path(path)


@contextlib.contextmanager
def _port(settings: Settings) -> Iterator[int]:
    """Give the port of the settings, or a free one when another process has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.web.host, settings.web.port))
        except OSError:
            port = free_port()
        else:
            port = settings.web.port
    yield port
