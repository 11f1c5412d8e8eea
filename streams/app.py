"""The Faust application: settings of Faust that matter, named explicitly.

Faust derives names of topics, agents and directories from modules unless told; a renamed module
would else start from an empty topic.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import faust
from yarl import URL

from tailbudget.schemas.kafka import KafkaSettings
from tailbudget.streams.transport import BatchTopic, BatchTransport

MAX_POLL_RECORDS: Final = 5000
"""Messages of one poll of one partition: the unit of work."""

FETCH_BYTES: Final = 4 * 1024 * 1024
"""Bytes fetched from one partition at once; holds `MAX_POLL_RECORDS` usual records."""

UNLIMITED: Final = 1_000_000
"""More than ever waits: what waits for an agent is bounded by `transport.WAITING_POLLS`."""

DAY_S: Final = 86_400.0
"""A worker whose agents wait for ClickHouse fetches nothing and is alive; heartbeats say so."""

AgentFunction = Callable[[Any], Awaitable[None]]


class App(faust.App):
    """A Faust app over `BatchTransport` that dies of an agent's error instead of losing a poll.

    Faust restarts a failed agent behind the poll that failed; a worker that crashes reads that
    poll again.

    Attributes:
        failure: the error that ended the app, None while all is well.
    """

    failure: BaseException | None = None

    def _new_transport(self) -> Any:
        return BatchTransport(self.conf.broker_consumer, self)

    def _new_producer_transport(self) -> Any:
        return BatchTransport(self.conf.broker_producer, self)

    async def _on_agent_error(self, agent: Any, exc: BaseException) -> None:
        del agent
        await self.fail(exc)

    async def fail(self, error: BaseException) -> None:
        """End the app because of this error."""
        self.failure = self.failure or error
        await self.crash(error)

    def add_agent(self, name: str, topics: tuple[str, ...], run: AgentFunction) -> None:
        """Run `run` over the polls of these topics."""
        channel = self.topic(*topics, value_serializer="raw", key_serializer="raw")
        self.agent(channel, name=f"tailbudget.{name}")(run)


def create_app(kafka: KafkaSettings, data_dir: Path) -> App:
    """Return the app of a worker; nothing is connected yet."""
    app = App(
        kafka.group,
        broker=[URL(f"kafka://{address}") for address in kafka.bootstrap.split(",")],
        broker_credentials=_credentials(kafka),
        broker_client_id="tailbudget",
        broker_max_poll_records=MAX_POLL_RECORDS,
        broker_session_timeout=kafka.session_timeout_s,
        broker_heartbeat_interval=kafka.heartbeat_s,
        broker_commit_interval=1.0,
        broker_max_poll_interval=DAY_S,
        consumer_max_fetch_size=FETCH_BYTES,
        consumer_auto_offset_reset="earliest",
        stream_buffer_maxsize=UNLIMITED,
        stream_wait_empty=False,
        producer_linger=0.005,
        producer_acks=-1,
        producer_max_request_size=2_000_000,
        topic_allow_declare=False,
        topic_disable_leader=True,
        datadir=data_dir / "faust",
        autodiscover=False,
        web_enabled=False,
    )
    app.conf.Topic = BatchTopic
    return app


def _credentials(kafka: KafkaSettings) -> Any:
    if kafka.security_protocol == "PLAINTEXT":
        return None
    context = None
    if kafka.security_protocol.endswith("SSL"):
        context = ssl.create_default_context(cafile=str(kafka.ssl_ca) if kafka.ssl_ca else None)
    if not kafka.security_protocol.startswith("SASL"):
        return faust.SSLCredentials(context)
    password = kafka.sasl_password.get_secret_value() if kafka.sasl_password else None
    return faust.SASLCredentials(
        username=kafka.sasl_username,
        password=password,
        ssl_context=context,
        mechanism=kafka.sasl_mechanism,
    )
