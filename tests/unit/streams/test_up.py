"""What `up` decides itself, and what it tells."""

from __future__ import annotations

import asyncio
import io
import logging
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import SecretStr
from rich.console import Console

from tailbudget.schemas.kafka import KafkaSettings
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import Answer, ClickHouse
from tailbudget.streams import up
from tailbudget.streams.embedded import EmbeddedBroker
from tailbudget.streams.kafka import kafka_config
from tailbudget.streams.narrator import Narrator

AUDIT = (225.0, 548.0, 1012.0, 3112, 13, "ok", "decode")


def test_the_embedded_broker_is_reached_without_the_real_ones_credentials() -> None:
    """Settings made for a protected cluster of three do not keep `up` from its own broker."""
    kafka = KafkaSettings(
        bootstrap="kafka:9092",
        replication=3,
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_username="me",
        sasl_password=SecretStr("secret"),
        ssl_ca=Path("ca.pem"),
    )
    chosen = up.embedded_settings(Settings(kafka=kafka), Path("demo"), "127.0.0.1:1", 6066).kafka
    wanted = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "PLAINTEXT"}
    assert kafka_config(chosen) == wanted
    assert chosen.replication == 1


@dataclass
class Store:
    """Answers with the newest audit: its figures and the end of its window."""

    ends_ms: list[int] = field(default_factory=list)

    def query(self, _: str, parameters: dict[str, Any]) -> Answer:
        assert parameters == {"service": "chat"}
        names = ("p50_ms", "p95_ms", "p99_ms", "requests", "failed", "verdict", "driver", "end")
        rows = tuple((*AUDIT, end) for end in self.ends_ms[-1:])
        return Answer(names, ("String",) * len(names), rows, truncated=False)


def test_each_audit_is_told_once_and_none_of_an_earlier_run() -> None:
    """Only an audit that was not there at the start, or the last time, is news."""
    store, out = Store([10_000]), io.StringIO()
    narrator = Narrator(Console(file=out, width=200), cast(ClickHouse, store), "chat")
    narrator.percentiles()
    assert out.getvalue() == ""
    store.ends_ms.append(20_000)
    narrator.percentiles()
    narrator.percentiles()
    (line,) = out.getvalue().splitlines()
    assert "p99  1,012 ms    3,112 requests, 13 failed  ok  tail driver decode" in line


class Dead:
    """A broker that has ended."""

    def alive(self) -> bool:
        return False


@pytest.fixture
def _as_before() -> Iterator[None]:
    """Put signal handlers and logging back."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    logging.disable(logging.NOTSET)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_as_before")
def test_all_ends_when_the_broker_does() -> None:
    """A broker that has ended is noticed; from then on a signal ends at once."""

    async def watch() -> bool:
        stop = asyncio.Event()
        await up._watch(cast(EmbeddedBroker, Dead()), stop)
        return stop.is_set()

    assert asyncio.run(watch())
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
