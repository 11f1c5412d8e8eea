"""Our topics: what each is for, how it is kept, and that it exists."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tailbudget.schemas.errors import BrokerError
from tailbudget.schemas.kafka import KafkaSettings
from tailbudget.streams.kafka import ClientConfig, admin, await_broker, kafka_config

_HOUR_MS: Final = 3_600_000
_LONG_H: Final = 30 * 24
"""Deploys, alerts and dead letters are few, and are asked for long after."""

SEGMENT_S: Final = 600
"""States of models replace each other every minute or so, and whoever takes over reads them all."""

_PATIENCE_S: Final = 15.0

MAX_MESSAGE_BYTES: Final = 4_194_304
"""Longest message that topics of ours take; what is longer than `max_record_bytes` is rejected by
us, with its place, where the broker would only refuse it."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """How a topic should be.

    Attributes:
        name: its name.
        partitions: how many; of a request topic, only when we create it ourselves.
        ours: whether we alone write it, so that its partitions and policy are ours to say.
        cleanup: the value of `cleanup.policy`.
        retention_h: hours that messages are kept.
        segment_s: seconds after which a segment is closed, so that it can be compacted; 0 leaves
            that to the broker.
    """

    name: str
    partitions: int
    ours: bool
    cleanup: str
    retention_h: int
    segment_s: int = 0

    def config(self) -> dict[str, str]:
        """Return the topic's settings for the broker."""
        retention_ms = str(self.retention_h * _HOUR_MS)
        segment = {"segment.ms": str(self.segment_s * 1000)} if self.segment_s else {}
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": retention_ms,
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
            **segment,
        }


def topic_specs(kafka: KafkaSettings) -> tuple[TopicSpec, ...]:
    """Return the topics that a worker needs.

    Dead letters and models are compacted: of the messages about one source offset, or one
    service, the newest counts. Signals are not, for each is a value of its own time, nor deploys:
    whoever announces them may leave the key out, which a compacted topic refuses, or use the
    service's name, which would lose the older ones.
    """
    many, kept_h, long_h = kafka.partitions, kafka.retention_h, max(kafka.retention_h, _LONG_H)
    requests = [TopicSpec(r.topic, many, False, "delete", kept_h) for r in kafka.requests]
    return (
        *requests,
        TopicSpec(kafka.panes_topic, many, True, "delete", kept_h),
        TopicSpec(kafka.deploys_topic, many, True, "delete", long_h),
        TopicSpec(kafka.alerts_topic, many, True, "delete", long_h),
        TopicSpec(kafka.dead_letters_topic, many, True, "compact,delete", long_h),
        TopicSpec(kafka.signals_topic, many, True, "delete", kept_h),
        TopicSpec(kafka.models_topic, many, True, "compact,delete", long_h, SEGMENT_S),
    )


def ensure_topics(kafka: KafkaSettings) -> frozenset[str]:
    """Create the topics that do not exist yet; return the names of the new ones.

    Raises:
        BrokerError: no broker answers, it refuses a topic, or a topic of ours that exists has
            other partitions than the settings say.
    """
    config = kafka_config(kafka)
    present = await_broker(config, timeout_s=_PATIENCE_S)
    wrong = [text for spec in topic_specs(kafka) for text in partition_problems(spec, present)]
    if wrong:
        raise BrokerError("; ".join(text for text, _ in wrong), remedy=wrong[0][1])
    missing = [spec for spec in topic_specs(kafka) if spec.name not in present]
    client = admin(config)
    made = frozenset(spec.name for spec in missing if _create(client, spec, kafka))
    await_topics(config, made)
    return made


def await_topics(
    config: ClientConfig, names: Collection[str], *, timeout_s: float = _PATIENCE_S
) -> None:
    """Wait until new topics are seen: a broker learns of them a little after they are made.

    Raises:
        BrokerError: some are not seen in time, or no broker answers.
    """
    deadline = time.monotonic() + timeout_s
    unseen = set(names)
    while unseen:
        present = await_broker(config, timeout_s=timeout_s)
        unseen = {name for name in names if not present.get(name)}
        if unseen and time.monotonic() > deadline:
            raise BrokerError(
                f"the broker does not show topics that it made: {', '.join(sorted(unseen))}",
                remedy="look at the broker's log",
            )
        if unseen:
            time.sleep(0.02)


def partition_problems(spec: TopicSpec, present: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return what is wrong with an existing topic's partitions, and the remedy."""
    count = present.get(spec.name)
    if count is None or not spec.ours or count == spec.partitions:
        return []
    what = f"topic {spec.name} has {count} partitions where {spec.partitions} are wanted"
    if count > spec.partitions:
        return [(what, f"set kafka.partitions to {count}, or kafka.prefix to start afresh")]
    return [(what, f"kafka-topics.sh --alter --topic {spec.name} --partitions {spec.partitions}")]


def policy_problems(spec: TopicSpec, policy: str) -> list[tuple[str, str]]:
    """Return what is wrong with how a topic is cleaned up, and the remedy.

    Args:
        spec: how the topic should be.
        policy: its `cleanup.policy`; empty when we may not see it.
    """
    has = frozenset(policy.replace(" ", "").split(",")) if policy else None
    change = f"kafka-configs.sh --alter --topic {spec.name} --add-config cleanup.policy"
    if has is None or has == frozenset(spec.cleanup.split(",")):
        return []
    if spec.ours:
        what = f"has cleanup.policy={policy} where {spec.cleanup} is wanted"
        return [(what, f"{change}=[{spec.cleanup}]")]
    if "compact" in has:
        what = f"has cleanup.policy={policy}: of records with one key all but the last are lost"
        return [(what, f"{change}=delete")]
    return []


def cleanup_policies(client: AdminClient, names: Sequence[str]) -> dict[str, str]:
    """Return how each topic is cleaned up; a topic whose settings we may not see is absent.

    Raises:
        BrokerError: the broker does not answer.
    """
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    found: dict[str, str] = {}
    for resource, answer in client.describe_configs(resources).items():
        try:
            found[resource.name] = answer.result(_PATIENCE_S)["cleanup.policy"].value
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise BrokerError(
                    f"the broker does not describe topic {resource.name}: {error.args[0].str()}",
                    remedy="grant DescribeConfigs on the topic",
                ) from error
        except KeyError:
            continue
    return found


def _create(client: AdminClient, spec: TopicSpec, kafka: KafkaSettings) -> bool:
    """Create a topic; return False when somebody else did in the meantime."""
    new = NewTopic(spec.name, spec.partitions, kafka.replication, config=spec.config())
    answer = client.create_topics([new], operation_timeout=_PATIENCE_S)[spec.name]
    try:
        answer.result(_PATIENCE_S)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise _refused(spec, kafka, error.args[0]) from error
    return True


def _refused(spec: TopicSpec, kafka: KafkaSettings, error: KafkaError) -> BrokerError:
    remedy = "create it by hand, or give the user the right to create topics"
    if error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        remedy = f"set kafka.replication (now {kafka.replication}) to at most the brokers' number"
    return BrokerError(
        f"Kafka at {kafka.bootstrap} refused to create topic {spec.name}: {error.str()}",
        remedy=remedy,
    )
