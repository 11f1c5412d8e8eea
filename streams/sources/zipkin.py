"""Traces of Zipkin, versions 1 and 2: lists of spans, as files and Kafka topics hold them.

They are JSON, or the protocol buffers and Thrift of `zipkin_binary`, which the first byte tells.

Times are microseconds. Client and server of a call may share one span id: in version 1 one span
has the annotations of both ("cs", "sr", "ss", "cr"), or each reports its half; in version 2 the
server's half says `shared`. They become two spans, the server's below the client's. A span that was
reported in pieces is joined. In version 1 the annotations count where both ends of a half are
there, for both are of one clock, and else `timestamp` and `duration`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tailbudget.streams.sources.proto_messages import is_binary
from tailbudget.streams.sources.span import Kind, Span
from tailbudget.streams.sources.tagged_span import Tagged, id_of, kind_of, span_of
from tailbudget.streams.sources.traces import TraceDecoder
from tailbudget.streams.sources.translated import NotOfFormatError, read_json
from tailbudget.streams.sources.zipkin_binary import objects

_HALVES: Final = ((Kind.CLIENT, "cs", "cr"), (Kind.SERVER, "sr", "ss"))
_MESSAGES: Final = ((Kind.PRODUCER, "ms"), (Kind.CONSUMER, "mr"))


class ZipkinDecoder(TraceDecoder):
    """Decodes Zipkin's traces; see the package docstring for what it promises."""

    name = "zipkin"

    @staticmethod
    def spans_of(value: bytes) -> Iterable[Span | None]:
        """Return the spans of a message: a list of spans, of lists of spans, or one span."""
        if is_binary(value):
            return [span for one in objects(value) for span in _spans(one)]
        return [span for one in _objects(read_json(value)) for span in _spans(one)]


def _objects(found: Any) -> Iterator[Mapping[str, Any]]:
    listed = found if isinstance(found, list) else [found]
    every = (one for part in listed for one in (part if isinstance(part, list) else [part]))
    for one in every:
        if isinstance(one, dict) and "traceId" in one:
            yield one
        else:
            raise NotOfFormatError("no list of spans: an element has no traceId")


def _spans(one: Mapping[str, Any]) -> Iterator[Span | None]:
    old = "binaryAnnotations" in one or _stamps(one).keys() & {"cs", "cr", "sr", "ss"}
    if old and "kind" not in one:
        yield from _of_version_1(one)
    else:
        yield _of_version_2(one)


def _of_version_2(one: Mapping[str, Any]) -> Span | None:
    kind, own, parent = kind_of(one.get("kind")), id_of(one.get("id")), id_of(one.get("parentId"))
    shared = kind is Kind.SERVER and one.get("shared") is True
    endpoint = one.get("localEndpoint")
    tags = one.get("tags")
    return span_of(
        Tagged(
            trace=one.get("traceId"),
            id=own,
            shared=shared,
            name=one.get("name"),
            kind=kind,
            service=endpoint.get("serviceName") if isinstance(endpoint, dict) else None,
            start_us=one.get("timestamp"),
            duration_us=one.get("duration"),
            tags=tags if isinstance(tags, dict) else {},
            parent=parent,
        )
    )


def _of_version_1(one: Mapping[str, Any]) -> Iterator[Span | None]:
    stamps, tags, hosts = _stamps(one), _tags(one), _hosts(one)
    own, parent = id_of(one.get("id")), id_of(one.get("parentId"))
    halves = [half for half in _HALVES if half[1] in stamps or half[2] in stamps]
    if not halves:
        kind = next((kind for kind, stamp in _MESSAGES if stamp in stamps), Kind.INTERNAL)
        halves = [(kind, "", "")]
    for index, (kind, first, last) in enumerate(halves):
        below = index == 1  # the server's half of a span that holds both
        begin, end = stamps.get(first), stamps.get(last)
        length = None if begin is None or end is None else end - begin
        if not below and length is None:
            begin, length = one.get("timestamp", begin), one.get("duration")
        yield span_of(
            Tagged(
                trace=one.get("traceId"),
                id=own,
                shared=below,
                name=one.get("name"),
                kind=kind,
                service=hosts.get(first) or hosts.get(last) or hosts.get(""),
                start_us=begin,
                duration_us=length,
                tags=tags,
                process={"service.instance.id": tags.get("spring.instance_id")},
                parent=parent,
            )
        )


def _stamps(one: Mapping[str, Any]) -> dict[str, float]:
    """Return the times of the annotations, in microseconds."""
    found: dict[str, float] = {}
    for note in _list(one.get("annotations")):
        value, time = note.get("value"), note.get("timestamp")
        if isinstance(value, str) and isinstance(time, int | float) and len(value) == 2:
            found[value] = time
    return found


def _hosts(one: Mapping[str, Any]) -> dict[str, str]:
    """Return the services by the annotations they wrote, and one of all by ""."""
    found: dict[str, str] = {}
    for note in (*_list(one.get("annotations")), *_list(one.get("binaryAnnotations"))):
        endpoint = note.get("endpoint")
        name = endpoint.get("serviceName") if isinstance(endpoint, dict) else None
        if isinstance(name, str) and name and note.get("key") not in {"sa", "ca", "ma"}:
            found.setdefault(str(note.get("value")), name)
            found.setdefault("", name)
    return found


def _tags(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        note["key"]: note.get("value")
        for note in _list(one.get("binaryAnnotations"))
        if isinstance(note.get("key"), str)
    }


def _list(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
