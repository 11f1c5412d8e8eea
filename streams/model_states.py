"""The compacted topic that keeps the models of each service, for whoever takes it over.

A state travels in parts, for it may be longer than a message; a part is keyed by service and
number. Each names the panes offset that the state is of, so that a worker which lost the partition
and writes late puts no older state in the place of a newer one, and the state's checksum, so that
parts of two states are none.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import uuid4
from zlib import crc32

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tailbudget.schemas.errors import BrokerError
from tailbudget.streams.kafka import ClientConfig

log = structlog.get_logger()

PART_BYTES: Final = 900_000
"""Below what a broker takes by default."""

MOST_PARTS: Final = 64
_HEAD: Final = struct.Struct("<2sBQIHH")
_MAGIC: Final = b"TM"
_VERSION: Final = 1
_PATIENCE_S: Final = 15.0


class States(Protocol):
    """Keeps a state for each service."""

    async def read(self, partition: int) -> Mapping[str, bytes]:
        """Return the newest whole state of each service of a partition."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """One message of the topic.

    Attributes:
        service: the service's name.
        version: grows with the panes offset that the state is of.
        checksum: of the whole state.
        number: index of this part.
        parts: how many there are.
        body: its bytes.
    """

    service: str
    version: int
    checksum: int
    number: int
    parts: int
    body: bytes


def messages(service: str, version: int, state: bytes) -> list[tuple[bytes, bytes]]:
    """Return key and value of the messages that carry a state.

    Raises:
        ValueError: it is too long.
    """
    parts = max(-(-len(state) // PART_BYTES), 1)
    if parts > MOST_PARTS:
        raise ValueError(f"a state of {len(state):,} bytes")
    return [
        (
            f"{number}:{service}".encode(),
            _HEAD.pack(_MAGIC, _VERSION, version, crc32(state), number, parts)
            + state[number * PART_BYTES : (number + 1) * PART_BYTES],
        )
        for number in range(parts)
    ]


def part_of(key: bytes | None, value: bytes | None) -> Part | None:
    """Return the part in a message; None when it is none of ours, or of another version."""
    number, colon, service = (key or b"").partition(b":")
    if not colon or value is None or len(value) < _HEAD.size:
        return None
    magic, release, version, checksum, index, parts = _HEAD.unpack_from(value)
    known = magic == _MAGIC and release == _VERSION and number == str(index).encode()
    if not known or not index < parts <= MOST_PARTS:
        return None
    body = value[_HEAD.size :]
    return Part(service.decode(errors="replace"), version, checksum, index, parts, body)


class Newest:
    """Puts states together from parts in the order of the topic."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[int, Part]] = {}
        self._whole: dict[str, tuple[int, bytes]] = {}

    def add(self, part: Part) -> None:
        """Take the next part."""
        held = self._parts.setdefault(part.service, {})
        same = (part.version, part.checksum)
        if any((other.version, other.checksum) != same for other in held.values()):
            held.clear()
        held[part.number] = part
        if len(held) < part.parts:
            return
        body = b"".join(held[number].body for number in range(part.parts))
        newer = part.version >= self._whole.get(part.service, (0, b""))[0]
        if newer and crc32(body) == part.checksum:
            self._whole[part.service] = (part.version, body)
        held.clear()

    def states(self) -> dict[str, bytes]:
        """Return the newest whole state of each service."""
        return {service: body for service, (_, body) in self._whole.items()}


class ModelStates:
    """States on the topic of a broker.

    Args:
        config: of the broker.
        topic: name of the topic.
    """

    def __init__(self, config: ClientConfig, topic: str) -> None:
        self._config = {
            **config,
            "group.id": f"{topic}-{uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
        }
        self._topic = topic

    async def read(self, partition: int) -> Mapping[str, bytes]:
        """Return the newest whole state of each service of a partition.

        Raises:
            BrokerError: the broker does not give it.
        """
        return await asyncio.to_thread(self._read, partition)

    def _read(self, partition: int) -> Mapping[str, bytes]:
        consumer = Consumer(self._config)
        newest = Newest()
        try:
            place = TopicPartition(self._topic, partition)
            low, high = consumer.get_watermark_offsets(place, _PATIENCE_S)
            consumer.assign([TopicPartition(self._topic, partition, low)])
            while low < high:
                low = self._poll(consumer, newest)
        except KafkaException as error:
            raise self._refused(error.args[0].str()) from error
        finally:
            consumer.close()
        return newest.states()

    def _poll(self, consumer: Consumer, newest: Newest) -> int:
        """Take the next message; return where the one after it is."""
        message = consumer.poll(_PATIENCE_S)
        if message is None:
            raise self._refused("it sends nothing")
        if (error := message.error()) is not None:
            raise self._refused(error.str())
        part = part_of(message.key(), message.value())
        if part is None:
            log.warning("foreign message", topic=self._topic, offset=message.offset())
        else:
            newest.add(part)
        return int(message.offset()) + 1

    def _refused(self, what: str) -> BrokerError:
        return BrokerError(
            f"the broker does not give topic {self._topic}: {what}",
            remedy="grant Read and Describe on the topic",
        )
