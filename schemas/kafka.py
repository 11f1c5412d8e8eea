"""Settings of Kafka: the broker, our topics on it, and how we join the consumer group."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

from tailbudget.schemas.settings_base import Group, Name, refuse

OWN_TOPICS: Final = ("panes", "deploys", "alerts", "dead-letters", "signals", "models")
"""The topics that we write ourselves, without their prefix."""

RequestFormat = Literal[
    "native",
    "aiperf",
    "llmperf",
    "otlp_json",
    "otlp_proto",
    "otel_spans",
    "jaeger",
    "zipkin",
    "nginx",
    "envoy",
    "aws_alb",
    "haproxy",
    "traefik",
    "guidellm",
    "vllm_bench",
    "perf_analyzer",
    "triton",
    "dynamo",
    "tgi",
    "sglang_log",
    "torchserve",
    "ray_serve",
    "kserve",
]
"""The formats that `streams.sources` decodes."""


class RequestTopic(Group):
    """One topic that request records arrive on."""

    topic: Name = Field(description="name of the topic; its partitions are the unit of scale-out")
    service: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="service of records that name none themselves"
    )
    format: RequestFormat = Field(default="native", description="format of the messages")
    mapping: Path | None = Field(
        default=None, description="mapping file for native JSON of another form"
    )
    pattern: Annotated[str, Field(min_length=1, max_length=4000)] | None = Field(
        default=None, description="log format of nginx or Envoy, as it is configured there"
    )
    trace_wait_s: float = Field(
        default=15.0,
        ge=0,
        le=3600,
        description="how much younger than the end of a trace a span must be for it to be judged",
    )


class KafkaSettings(Group):
    """The broker, our topics on it, and how we join the consumer group."""

    bootstrap: Annotated[str, Field(pattern=r"^[^\s,:]+:\d{1,5}(,[^\s,:]+:\d{1,5})*$")] = Field(
        default="127.0.0.1:9092",
        description="HOST:PORT of one or more brokers, separated by commas",
    )
    prefix: Name = Field(default="tailbudget", description="start of the names of our own topics")
    group: Name = Field(default="tailbudget", description="consumer group that all workers join")
    partitions: int = Field(
        default=4, ge=1, le=10_000, description="partitions of topics that we create"
    )
    replication: int = Field(
        default=1, ge=1, le=100, description="copies of each partition that we create"
    )
    retention_h: int = Field(
        default=24, ge=1, description="hours that topics that we create keep messages"
    )
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="how the connection is protected"
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        default=None, description="how we prove who we are, with the SASL_* protocols"
    )
    sasl_username: str | None = Field(default=None, description="user name for SASL")
    sasl_password: SecretStr | None = Field(default=None, description="password for SASL")
    ssl_ca: Path | None = Field(
        default=None, description="file of the authority that signed the broker"
    )
    requests: tuple[RequestTopic, ...] = Field(
        default=(RequestTopic(topic="tailbudget.requests"),),
        min_length=1,
        description="topics that request records arrive on",
    )
    incarnation: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="number of the topics' life; null asks the broker for their ids"
    )
    session_timeout_s: float = Field(
        default=10.0, ge=1, le=300, description="silence after which the group gives up a worker"
    )
    heartbeat_s: float = Field(
        default=3.0, gt=0, validate_default=True, description="interval of heartbeats to the group"
    )
    contiguous: bool = Field(
        default=False, description="treat a hole in the offsets as a broker's fault and read again"
    )

    @property
    def panes_topic(self) -> str:
        """Pane summaries, keyed by service."""
        return f"{self.prefix}.panes"

    @property
    def deploys_topic(self) -> str:
        """Deploy and scale-up events."""
        return f"{self.prefix}.deploys"

    @property
    def alerts_topic(self) -> str:
        """Alerts that fire and resolve."""
        return f"{self.prefix}.alerts"

    @property
    def dead_letters_topic(self) -> str:
        """What is no record, with the place it came from."""
        return f"{self.prefix}.dead-letters"

    @property
    def signals_topic(self) -> str:
        """What hardware, engines and platforms measure of themselves."""
        return f"{self.prefix}.signals"

    @property
    def models_topic(self) -> str:
        """States of the models of each service."""
        return f"{self.prefix}.models"

    @property
    def own_topics(self) -> tuple[str, ...]:
        """The topics that we write ourselves."""
        return tuple(f"{self.prefix}.{name}" for name in OWN_TOPICS)

    @field_validator("security_protocol", "sasl_mechanism", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("requests")
    @classmethod
    def _distinct(
        cls, value: tuple[RequestTopic, ...], info: ValidationInfo
    ) -> tuple[RequestTopic, ...]:
        topics = [entry.topic for entry in value]
        twice = sorted({topic for topic in topics if topics.count(topic) > 1})
        if twice:
            raise refuse("twice", f"names {twice[0]!r} twice", "list each topic once")
        prefix = info.data.get("prefix")
        own = {f"{prefix}.{name}" for name in OWN_TOPICS}
        ours = sorted(own & set(topics))
        if ours:
            raise refuse(
                "own_topic", f"{ours[0]!r} is one of our own topics", "use another name or prefix"
            )
        return value

    @field_validator("heartbeat_s")
    @classmethod
    def _within_session(cls, value: float, info: ValidationInfo) -> float:
        session_s = info.data.get("session_timeout_s")
        if session_s is not None and value * 2 > session_s:
            raise refuse(
                "heartbeat",
                f"is more than half of session_timeout_s ({session_s:g})",
                "use a third of session_timeout_s or less, so that one lost heartbeat is no death",
            )
        return value

    @model_validator(mode="after")
    def _credentials(self) -> Self:
        wanted = self.security_protocol.startswith("SASL")
        keys = ("sasl_mechanism", "sasl_username", "sasl_password")
        missing = [key for key in keys if getattr(self, key) is None]
        if wanted and missing:
            raise refuse(
                "sasl",
                f"{self.security_protocol} needs {', '.join(missing)}",
                "set them, or use security_protocol PLAINTEXT or SSL",
            )
        if not wanted and len(missing) < len(keys):
            raise refuse(
                "sasl",
                f"sasl_* keys have no effect with security_protocol {self.security_protocol}",
                "use SASL_SSL or SASL_PLAINTEXT, or remove them",
            )
        return self
