"""What travels on the panes topic, and what it proves.

Ingest cuts the input of a source partition into segments [start, end) of offsets.
Three facts make counting exact although any process may die at any moment:

- a segment is sent only once `start` is the committed offset of its source, so a segment that
  starts at or behind the end of an earlier one proves that one committed: it counts for good;
- a `Mark` proves the same without data, and fences off workers of an older group generation;
- a segment that nobody proved is dropped when its source is taken over: its records come again.

`streams.assembly` applies these rules.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tailbudget.schemas.errors import ReleaseError, WireError

MAGIC: Final = b"TP"
VERSION: Final = 1
_HEAD: Final = struct.Struct("<2sBI")


@dataclass(frozen=True, slots=True)
class Segment:
    """One service's share of one segment of one source partition.

    Attributes:
        source: "topic:partition:incarnation" of the request topic.
        generation: the consumer group's generation when the source was assigned.
        start: first source offset; committed when this was sent.
        end: one past the last source offset.
        part: index of this message among the `parts` of the segment and service.
        parts: how many messages carry the segment's share of this service.
        service: the service's name.
        watermark_ns: newest credible event time seen in the source.
        body: the encoded `Summary`.
    """

    source: str
    generation: int
    start: int
    end: int
    part: int
    parts: int
    service: str
    watermark_ns: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Mark:
    """Says that `start` is the committed offset of a source, and who owns it now.

    Attributes:
        source: "topic:partition:incarnation" of the request topic.
        generation: the consumer group's generation of the owner.
        start: the committed offset; nothing below it will be sent again.
        watermark_ns: newest credible event time seen in the source.
    """

    source: str
    generation: int
    start: int
    watermark_ns: int


def source_key(topic: str, partition: int, incarnation: int) -> str:
    """Return the name of a source partition; the incarnation counts re-creations of its topic."""
    return f"{topic}:{partition}:{incarnation}"


def encode(message: Segment | Mark) -> bytes:
    """Return the message's bytes: magic, version, length of the header, JSON header, body."""
    fields: dict[str, Any] = {
        "source": message.source,
        "generation": message.generation,
        "start": message.start,
        "watermark_ns": message.watermark_ns,
    }
    body = b""
    if isinstance(message, Segment):
        fields |= {
            "end": message.end,
            "part": message.part,
            "parts": message.parts,
            "service": message.service,
        }
        body = message.body
    header = orjson.dumps(fields)
    return _HEAD.pack(MAGIC, VERSION, len(header)) + header + body


def decode(data: bytes | None) -> Segment | Mark:
    """Return the message that `encode` wrote.

    Raises:
        WireError: the bytes are no such message, or damaged.
        ReleaseError: the message is of another version.
    """
    if data is None or len(data) < _HEAD.size or data[:2] != MAGIC:
        raise WireError("not a message of tailbudget's", remedy=_FOREIGN)
    _, version, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise ReleaseError(
            f"a message of version {version}, this worker reads version {VERSION}",
            remedy="run the same release of tailbudget on all workers of the group",
        )
    end = _HEAD.size + length
    try:
        fields = orjson.loads(data[_HEAD.size : end])
        message = Segment(**fields, body=data[end:]) if "end" in fields else Mark(**fields)
    except (orjson.JSONDecodeError, TypeError) as error:
        raise WireError(f"a damaged message: {error}", remedy=_FOREIGN) from error
    if wrong := [name for name, value in fields.items() if type(value) is not _kind(name)]:
        raise WireError(f"a damaged message: {', '.join(wrong)}", remedy=_FOREIGN)
    return message


def _kind(name: str) -> type:
    return str if name in {"source", "service"} else int


_FOREIGN: Final = "let nothing but tailbudget's workers write to the panes topic"
