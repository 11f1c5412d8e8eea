"""What travels on the panes topic, and what it proves.

Ingest cuts the input of a source partition into segments [start, end) of offsets.
A worker that owns several partitions of a topic sends their segments of one tick together, and
commits their ends in one request, which a broker takes as a whole or not at all.
Three facts make counting exact although any process may die at any moment:

- a segment is sent only once `start` is the committed offset of its source, so a segment that
  starts at or behind the end of an earlier one proves that one committed: it counts for good, with
  all that was sent together with it;
- a `Mark` proves the same without data, and fences off workers of an older group generation;
- a segment that nobody proved is dropped when its source is taken over: its records come again.

`streams.assembly` applies these rules.
"""

from __future__ import annotations

import struct
from dataclasses import asdict, astuple, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Final

import orjson

from tailbudget.schemas.errors import ReleaseError, WireError

MAGIC: Final = b"TP"
VERSION: Final = 2
_HEAD: Final = struct.Struct("<2sBI")


@dataclass(frozen=True, slots=True)
class Span:
    """One segment of one source partition.

    Attributes:
        source: "topic:partition:incarnation" of the request topic.
        start: first source offset; committed when this was sent.
        end: one past the last source offset.
        watermark_ns: newest credible event time seen in the source.
    """

    source: str
    start: int
    end: int
    watermark_ns: int


@dataclass(frozen=True, slots=True)
class Segment:
    """One service's share of the segments of some source partitions, committed together.

    Attributes:
        spans: the segments, of different partitions of one topic.
        generation: the consumer group's generation when the sources were assigned.
        part: index of this message among the `parts` of the segments and service.
        parts: how many messages carry the segments' share of this service.
        service: the service's name.
        body: the encoded `Summary`.
    """

    spans: tuple[Span, ...]
    generation: int
    part: int
    parts: int
    service: str
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
    body = message.body if isinstance(message, Segment) else b""
    header = orjson.dumps(_fields(message))
    return _HEAD.pack(MAGIC, VERSION, len(header)) + header + body


def _fields(message: Segment | Mark) -> dict[str, Any]:
    if isinstance(message, Mark):
        return asdict(message)
    return {
        "spans": [astuple(span) for span in message.spans],
        "generation": message.generation,
        "part": message.part,
        "parts": message.parts,
        "service": message.service,
    }


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
        spans = tuple(Span(*span) for span in fields.pop("spans", ()))
        message = Segment(spans, **fields, body=data[end:]) if spans else Mark(**fields)
    except (orjson.JSONDecodeError, TypeError, AttributeError) as error:
        raise WireError(f"a damaged message: {error}", remedy=_FOREIGN) from error
    if wrong := sorted({*_wrong(message), *(name for span in spans for name in _wrong(span))}):
        raise WireError(f"a damaged message: {', '.join(wrong)}", remedy=_FOREIGN)
    return message


def _wrong(part: Segment | Mark | Span) -> list[str]:
    """Return the fields that are not of their type."""
    kinds = {"source": str, "service": str, "body": bytes, "spans": tuple}
    names = (field.name for field in dataclass_fields(part))
    return [name for name in names if type(getattr(part, name)) is not kinds.get(name, int)]


_FOREIGN: Final = "let nothing but tailbudget's workers write to the panes topic"
