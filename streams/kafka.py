"""How we reach Kafka outside Faust: client settings, topics, and errors that name the remedy."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from pydantic import SecretStr

from tailbudget.schemas.errors import BrokerError, ConfigError

ClientConfig = Mapping[str, Any]
"""Properties of librdkafka, as `client_config` returns them."""

CLIENT_LOG: Final = logging.getLogger("tailbudget.kafka.client")
"""What librdkafka itself says; silent unless logging is set up for it."""
CLIENT_LOG.addHandler(logging.NullHandler())


class KafkaAccess(Protocol):
    """The part of the Kafka settings that says where the brokers are and who we are."""

    @property
    def bootstrap(self) -> str:
        """Addresses, separated by commas."""

    @property
    def security_protocol(self) -> str | None:
        """Such as "SASL_SSL"."""

    @property
    def sasl_mechanism(self) -> str | None:
        """Such as "SCRAM-SHA-512"."""

    @property
    def sasl_username(self) -> str | None:
        """Who we are."""

    @property
    def sasl_password(self) -> SecretStr | None:
        """What proves it."""

    @property
    def ssl_ca(self) -> Path | str | None:
        """File with the certificates that we trust."""


def kafka_config(access: KafkaAccess) -> dict[str, str]:
    """Return the librdkafka properties for the configured brokers and credentials."""
    password = access.sasl_password
    return client_config(
        access.bootstrap,
        security_protocol=access.security_protocol,
        sasl_mechanism=access.sasl_mechanism,
        sasl_username=access.sasl_username,
        sasl_password=password.get_secret_value() if password else None,
        ssl_ca=str(access.ssl_ca) if access.ssl_ca else None,
    )


def client_config(
    bootstrap: str,
    *,
    security_protocol: str | None = None,
    sasl_mechanism: str | None = None,
    sasl_username: str | None = None,
    sasl_password: str | None = None,
    ssl_ca: str | None = None,
) -> dict[str, str]:
    """Return librdkafka properties; what is None is left to the library's default."""
    properties = {
        "bootstrap.servers": bootstrap,
        "security.protocol": security_protocol,
        "sasl.mechanism": sasl_mechanism,
        "sasl.username": sasl_username,
        "sasl.password": sasl_password,
        "ssl.ca.location": ssl_ca,
    }
    return {name: value for name, value in properties.items() if value}


def admin(config: ClientConfig) -> AdminClient:
    """Return an administration client; it connects when it is first asked something.

    Raises:
        ConfigError: librdkafka refuses the properties, such as a file that is no certificate.
    """
    return _client(config)


def await_broker(config: ClientConfig, *, timeout_s: float = 10.0) -> dict[str, int]:
    """Wait until a broker answers; return its topics with their number of partitions.

    Raises:
        BrokerError: none answered in time; the message holds the last thing librdkafka said.
        ConfigError: librdkafka refuses the properties.
    """
    said: list[KafkaError] = []
    client = _client(config, error_cb=said.append)
    deadline = time.monotonic() + timeout_s
    while True:
        remaining_s = deadline - time.monotonic()
        try:
            metadata = client.list_topics(timeout=max(min(remaining_s, 1.0), 0.1))
        except KafkaException as error:
            client.poll(0)
            if remaining_s <= 0:
                raise _unreachable(config, said, error) from None
        else:
            return {name: len(topic.partitions) for name, topic in metadata.topics.items()}


def _client(config: ClientConfig, **options: Any) -> AdminClient:
    try:
        return AdminClient({**config, "logger": CLIENT_LOG, **options})
    except KafkaException as error:
        authority = config.get("ssl.ca.location")
        raise ConfigError(
            f"the Kafka client refuses its settings: {error.args[0].str()}"
            + (f" (kafka.ssl_ca is {authority})" if authority else ""),
            remedy="correct kafka.security_protocol, kafka.ssl_ca and the kafka.sasl_* keys",
        ) from error


def _unreachable(
    config: ClientConfig, said: list[KafkaError], error: KafkaException
) -> BrokerError:
    names = [cause.name() for cause in said]
    detail = next((cause.str() for cause in said if cause.name() != "_ALL_BROKERS_DOWN"), None)
    remedy = "start it, or set kafka.bootstrap (TAILBUDGET_KAFKA__BOOTSTRAP) to where it is"
    if "_AUTHENTICATION" in names:
        remedy = "check kafka.sasl_username, kafka.sasl_password and kafka.sasl_mechanism"
    elif "_SSL" in names:
        remedy = "check kafka.security_protocol and kafka.ssl_ca"
    return BrokerError(
        f"no Kafka broker answers at {config['bootstrap.servers']}:"
        f" {detail or error.args[0].str()}",
        remedy=remedy,
    )
