"""Zipkin's binary encodings in Kafka: version 2 as protocol buffers, version 1 as Thrift.

Both become what the JSON of their version is, so that one decoder judges all. Fields are those of
`zipkin.proto` and `zipkinCore.thrift` of openzipkin/zipkin-api. Texts that people wrote beside the
known fields are not read. The first bytes tell them apart, as in Zipkin's own collector: a Thrift
list of structs begins with 12; field 1 of a Thrift span (an i64) begins with 10, 0, 1, and a list
of protocol buffers with 10 and a length, which is never 0.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from google.protobuf.message import DecodeError

from tailbudget.streams.sources.proto_messages import Messages, classes
from tailbudget.streams.sources.thrift_binary import Fields, Thrift
from tailbudget.streams.sources.translated import NotOfFormatError

_PROTO: Final[Messages] = {
    "Endpoint": {"service_name": (1, "string")},
    "Tag": {"key": (1, "string"), "value": (2, "string")},
    "Span": {
        "trace_id": (1, "bytes"),
        "parent_id": (2, "bytes"),
        "id": (3, "bytes"),
        "kind": (4, "int32"),
        "name": (5, "string"),
        "timestamp": (6, "fixed64"),
        "duration": (7, "uint64"),
        "local_endpoint": (8, "Endpoint"),
        "tags": (11, "Tag*"),
        "shared": (13, "bool"),
    },
    "ListOfSpans": {"spans": (1, "Span*")},
}
_KINDS: Final = ("", "CLIENT", "SERVER", "PRODUCER", "CONSUMER")

_LIST: Final = 12
_FIRST_FIELD: Final = b"\x0a\x00\x01"
_BEGINS: Final = re.compile(
    rb"\x0a[\x80-\xff]{0,4}[\x00-\x7f]\x0a(?:\x08.{8}|\x10.{16})(?:\x12|\x1a)\x08", re.DOTALL
)
"""A span whose first fields are its trace, and its parent or itself, all ids of 8 or 16 bytes."""

_TEXT: Final = 6
_64_BITS: Final = 2**64 - 1
_NUMBERS: Final = {2: ">h", 3: ">i", 4: ">q", 5: ">d"}


def is_thrift(value: bytes) -> bool:
    """Return whether a binary message is Thrift."""
    return value[0] == _LIST or value.startswith(_FIRST_FIELD)


def recognises(head: bytes) -> bool:
    """Return whether a file begins as one of these encodings do, and OTLP does not."""
    if head[:1] == bytes([_LIST]):
        return head[5:8] == _FIRST_FIELD
    return _BEGINS.match(head) is not None


def objects(value: bytes) -> Iterator[dict[str, Any]]:
    """Yield the spans of a binary message, as the objects that their JSON would be.

    Raises:
        NotOfFormatError: it is none of these encodings, or damaged.
    """
    return _of_thrift(value) if is_thrift(value) else _of_proto(value)


def _of_proto(value: bytes) -> Iterator[dict[str, Any]]:
    try:
        found = _proto_classes()["ListOfSpans"].FromString(value)
    except (DecodeError, RuntimeError) as error:  # RuntimeError: the pure-Python runtime
        raise NotOfFormatError(f"no ListOfSpans: {error}") from None
    if not found.spans:
        raise NotOfFormatError("no ListOfSpans: it holds no span")
    for span in found.spans:
        yield {
            "traceId": span.trace_id.hex(),
            "parentId": span.parent_id.hex(),
            "id": span.id.hex(),
            "kind": _KINDS[span.kind] if 0 <= span.kind < len(_KINDS) else "",
            "name": span.name,
            "timestamp": span.timestamp,
            "duration": span.duration or None,
            "localEndpoint": {"serviceName": span.local_endpoint.service_name},
            "tags": {tag.key: tag.value for tag in span.tags},
            "shared": span.shared,
        }


def _of_thrift(value: bytes) -> Iterator[dict[str, Any]]:
    reader = Thrift(value)
    try:
        spans = reader.listed() if value[0] == _LIST else [reader.fields()]
    except ValueError as error:
        raise NotOfFormatError(f"no Thrift of Zipkin: {error}") from None
    for span in spans:
        yield _of_version_1(span)


def _of_version_1(span: Fields) -> dict[str, Any]:
    """Return a struct Span; its fields are numbered as in `zipkinCore.thrift`."""
    return {
        "traceId": _hex(span.get(12)) + _hex(span.get(1)),
        "id": _hex(span.get(4)),
        "parentId": _hex(span.get(5)),
        "name": _text(span.get(3)),
        "timestamp": span.get(10),
        "duration": span.get(11),
        "annotations": [
            {"timestamp": one.get(1), "value": _text(one.get(2)), "endpoint": _endpoint(one.get(3))}
            for one in _structs(span.get(6))
        ],
        "binaryAnnotations": [
            {
                "key": _text(one.get(1)),
                "value": _plain(one.get(2), one.get(3)),
                "endpoint": _endpoint(one.get(4)),
            }
            for one in _structs(span.get(8))
        ],
    }


def _structs(value: Any) -> list[Fields]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else None


def _hex(number: Any) -> str:
    return f"{number & _64_BITS:016x}" if isinstance(number, int) else ""


def _endpoint(host: Any) -> dict[str, Any]:
    return {"serviceName": _text(host.get(3))} if isinstance(host, dict) else {}


def _plain(value: Any, kind: Any) -> Any:
    """Return the value of an annotation by the type that it names; None where it is of no use."""
    if not isinstance(value, bytes) or not isinstance(kind, int):
        return None
    if kind in _NUMBERS:
        form = _NUMBERS[kind]
        return struct.unpack(form, value)[0] if len(value) == struct.calcsize(form) else None
    if kind == 0:
        return value == b"\x01"
    return _text(value) if kind == _TEXT else None


@cache
def _proto_classes() -> dict[str, Any]:
    return classes("zipkin.proto3", _PROTO)
