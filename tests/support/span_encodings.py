"""Spans in the binary encodings of Zipkin and Jaeger, written by others or by hand."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from typing import Any

import thriftpy2
from thriftpy2.protocol.binary import TBinaryProtocol
from thriftpy2.transport import TMemoryBuffer

IDL = """
struct Endpoint { 1: i32 ipv4  2: i16 port  3: string service_name }
struct Annotation { 1: i64 timestamp  2: string value  3: optional Endpoint host }
enum AnnotationType { BOOL, BYTES, I16, I32, I64, DOUBLE, STRING }
struct BinaryAnnotation {
  1: string key  2: binary value  3: AnnotationType annotation_type  4: optional Endpoint host
}
struct Span {
  1: i64 trace_id  3: string name  4: i64 id  5: optional i64 parent_id
  6: list<Annotation> annotations  8: list<BinaryAnnotation> binary_annotations
  9: optional bool debug  10: optional i64 timestamp  11: optional i64 duration
  12: optional i64 trace_id_high
}
"""
THRIFT: Any = thriftpy2.load_fp(io.StringIO(IDL), "zipkin_core_thrift")


def varint(number: int) -> bytes:
    """Return a number as protocol buffers have it, seven bits a byte."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes | str | float | None) -> bytes:
    """Return one field of protocol buffers, written by hand; nothing for what is not there."""
    if value is None or value in {"", b""}:
        return b""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    text = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(text)) + text


KINDS = ["", "CLIENT", "SERVER", "PRODUCER", "CONSUMER"]


def zipkin_proto(spans: Iterable[dict[str, Any]]) -> bytes:
    """Return spans of version 2 as a ListOfSpans."""
    out = b""
    for span in spans:
        endpoint = span.get("localEndpoint", {})
        trace = span["traceId"].zfill(32 if len(span["traceId"]) > 16 else 16)
        body = field(1, bytes.fromhex(trace))
        body += field(2, bytes.fromhex(span["parentId"]) if span.get("parentId") else None)
        body += field(3, bytes.fromhex(span["id"].zfill(16)))
        body += field(4, KINDS.index(span.get("kind", ""))) + field(5, span.get("name"))
        body += varint(6 << 3 | 1) + struct.pack("<Q", span["timestamp"])
        body += field(7, span.get("duration"))
        body += field(8, field(1, endpoint.get("serviceName")) + field(4, endpoint.get("port")))
        for key, value in span.get("tags", {}).items():
            body += field(11, field(1, key) + field(2, value))
        body += field(13, 1 if span.get("shared") else None)
        body += field(10, varint(1 << 3 | 1) + struct.pack("<Q", 5) + field(2, "a note"))
        out += field(1, body)
    return out


def signed(text: str) -> int:
    """Return hexadecimal digits as the i64 that Thrift has for them."""
    return int.from_bytes(bytes.fromhex(text.zfill(16)), "big", signed=True)


def host(endpoint: dict[str, Any] | None) -> Any:
    if endpoint is None:
        return None
    return THRIFT.Endpoint(ipv4=1, port=2, service_name=endpoint.get("serviceName"))


def zipkin_thrift(span: dict[str, Any]) -> bytes:
    """Return a span of version 1, as thriftpy2 writes it."""
    high = span["traceId"][:-16]
    made = THRIFT.Span(
        trace_id=signed(span["traceId"][-16:]),
        trace_id_high=signed(high) if high else None,
        name=span.get("name"),
        id=signed(span["id"]),
        parent_id=signed(span["parentId"]) if span.get("parentId") else None,
        timestamp=span.get("timestamp"),
        duration=span.get("duration"),
        debug=False,
        annotations=[
            THRIFT.Annotation(
                timestamp=one["timestamp"], value=one["value"], host=host(one.get("endpoint"))
            )
            for one in span.get("annotations", [])
        ],
        binary_annotations=[
            THRIFT.BinaryAnnotation(
                key=one["key"],
                value=str(one["value"]).encode(),
                annotation_type=6,
                host=host(one.get("endpoint")),
            )
            for one in span.get("binaryAnnotations", [])
        ],
    )
    buffer = TMemoryBuffer()
    TBinaryProtocol(buffer).write_struct(made)
    return bytes(buffer.getvalue())


def thrift_list(spans: Iterable[dict[str, Any]]) -> bytes:
    every = [zipkin_thrift(span) for span in spans]
    return b"\x0c" + struct.pack(">i", len(every)) + b"".join(every)


def tag(pair: dict[str, Any]) -> bytes:
    value, kind = pair["value"], pair.get("type", "string")
    body = field(1, pair["key"])
    if kind == "bool":
        return body + field(2, 1) + field(4, int(value))
    if kind in {"int64", "float64"}:
        number = int(value) if kind == "int64" else float(value)
        return (
            body
            + field(2, 2 if kind == "int64" else 3)
            + field(5 if kind == "int64" else 6, number)
        )
    return body + field(3, value)


def jaeger_proto(span: dict[str, Any], process: dict[str, Any]) -> bytes:
    """Return a span of Jaeger's page as a message of its topic."""
    body = field(1, bytes.fromhex(span["traceID"].zfill(32)))
    body += field(2, bytes.fromhex(span["spanID"].zfill(16))) + field(3, span["operationName"])
    for one in span["references"]:
        kind = 1 if one["refType"] == "FOLLOWS_FROM" else None
        body += field(4, field(2, bytes.fromhex(one["spanID"].zfill(16))) + field(3, kind))
    for number, us in ((6, span["startTime"]), (7, span["duration"])):
        body += field(number, field(1, us // 10**6) + field(2, us % 10**6 * 1_000)) or (
            varint(number << 3 | 2) + b"\0"
        )
    body += b"".join(field(8, tag(one)) for one in span["tags"])
    tags = b"".join(field(2, tag(one)) for one in process.get("tags", []))
    return body + field(10, field(1, process["serviceName"]) + tags)
