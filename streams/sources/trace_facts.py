"""What the attributes of a span say of a request, under the names of a record.

Only the keys below are read. Everything else is passed over unread, above all prompts and answers:
they are never kept. Names are those of OpenTelemetry's semantic conventions 1.20 to 1.37 (HTTP,
RPC, GenAI; old names beside new ones) and of the tags of OpenTracing, which Jaeger and Zipkin
clients write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

Attributes = Mapping[str, Any]

_RESOURCE: Final[Mapping[str, tuple[str, ...]]] = {
    "version": ("service.version",),
    "instance_id": ("service.instance.id", "k8s.pod.name", "host.name", "hostname"),
    "region": ("cloud.region",),
    "zone": ("cloud.availability_zone",),
    "environment": ("deployment.environment.name", "deployment.environment"),
}
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "model_variant": (
        "gen_ai.request.model",
        "gen_ai.response.model",
        "llm.request.model",
        "llm.model_name",
    ),
    "customer_tier": ("customer.tier", "customer_tier"),
    "method": ("http.request.method", "http.method"),
}
_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.usage.prompt_tokens",
        "llm.token_count.prompt",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.usage.completion_tokens",
        "llm.token_count.completion",
    ),
    "payload_bytes": ("http.request.body.size", "http.request_content_length"),
    "batch_size": ("batch_size", "gen_ai.request.batch_size"),
}
_HTTP_CODES: Final = ("http.response.status_code", "http.status_code")
_GRPC_CODES: Final = ("rpc.grpc.status_code", "grpc.status_code", "rpc.response.status_code")
_PATHS: Final = ("http.target", "url.path", "http.path", "http.url", "url.full")
_OPERATION: Final = ("gen_ai.operation.name",)

_GRPC: Final = {
    1: "cancelled",
    4: "timeout",
    8: "rejected",
    14: "rejected",
}
"""Outcomes by gRPC code: cancelled, deadline exceeded, resource exhausted, unavailable."""
_GRPC_NAMES: Final = {"ok": 0, "cancelled": 1, "deadline_exceeded": 4, "resource_exhausted": 8,
                      "unavailable": 14}  # fmt: skip

_ID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|(?<![0-9A-Za-z])(?=[0-9a-f]*\d)[0-9a-f]{12,}(?![0-9A-Za-z])"
    r"|(?<=/)\d+(?=/|$)|(?<=/)(?=[0-9a-f-]*\d)[0-9a-f-]{8,}(?=/|$)|(?<![0-9A-Za-z.])\d{5,}(?![0-9A-Za-z.])",
    re.IGNORECASE,
)
_LONGEST: Final = 120


@lru_cache(maxsize=8192)
def without_ids(name: str) -> str:
    """Return a name with ids in it replaced by "*": it is to name an operation, not a request."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name[: 4 * _LONGEST])
    return _ID.sub("*", shown)[:_LONGEST].strip()


def operation(name: str, attributes: Attributes) -> str:
    """Return the name of what a span does; the model is a dimension, and no part of it."""
    told: str | None = _first(attributes, _OPERATION, _text)
    if told is not None and name.startswith(told):
        return told
    return without_ids(name) or "(unnamed)"


@dataclass(frozen=True, slots=True)
class Resource:
    """What a process tells of itself, read once for all of its spans.

    Attributes:
        service: its name.
        facts: what else is known of it, under the names of a record.
    """

    service: str | None
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, attributes: Attributes, service: Any = None) -> Resource:
        """Return what the attributes of a process tell; its service, where they do not."""
        name = attributes.get("service.name", service)
        known = isinstance(name, str) and name
        return cls(name[:_LONGEST] if known else None, _told(attributes, _RESOURCE_KEYS))


def facts(attributes: Attributes, resource: Resource, *, failed: bool) -> dict[str, Any]:
    """Return what a span and its resource tell, of what is known; a fact is left out otherwise.

    Args:
        attributes: of the span.
        resource: of the process that it ran in.
        failed: the span's own status says so.
    """
    found = {**resource.facts, **_told(attributes, _SPAN_KEYS)}
    if attributes:
        route = _route(attributes)
        if route is not None:
            found["route"] = route
    if attributes or failed:
        status = _status(attributes, failed=failed)
        if status is not None:
            found["status"] = status
    return found


def _told(attributes: Attributes, keys: Mapping[str, _Key]) -> dict[str, Any]:
    """Return the facts of the attributes; of several that tell the same the first name counts."""
    found: dict[str, Any] = {}
    ranks: dict[str, int] = {}
    for key, value in attributes.items():
        known = keys.get(key)
        if known is not None and known.rank < ranks.get(known.name, _LAST):
            read = known.read(value)
            if read is not None:
                found[known.name], ranks[known.name] = read, known.rank
    return found


def _route(attributes: Attributes) -> str | None:
    route: str | None = _first(attributes, ("http.route",), _text)
    if route is not None:
        return route
    service = _first(attributes, ("rpc.service",), _text)
    method = _first(attributes, ("rpc.method",), _text)
    if method is not None:
        return f"{service}/{method}" if service else method
    path = _first(attributes, _PATHS, _text)
    return None if path is None else _path(path)


def _path(url: str) -> str:
    """Return the path of a URL, ids and the query left out."""
    path = re.sub(r"^[a-z]+://[^/]*", "", url, flags=re.IGNORECASE).split("?")[0].split("#")[0]
    return without_ids(path or "/")


def _status(attributes: Attributes, *, failed: bool) -> str | None:
    code = _first(attributes, _HTTP_CODES, _count)
    if code is not None and 100 <= code < 600 and not (failed and code < 400):
        return str(int(code))
    grpc = _first(attributes, _GRPC_CODES, _grpc_code)
    if grpc:
        return _GRPC.get(grpc, "error")
    if not failed:
        return None
    kind = _first(attributes, ("error.type",), _text)
    words = (kind or "").lower()
    if "timeout" in words or "deadline" in words:
        return "timeout"
    return "cancelled" if "cancel" in words else "error"


def _first(source: Attributes, keys: tuple[str, ...], read: Callable[[Any], Any]) -> Any:
    for key in keys:
        if key in source:
            value = read(source[key])
            if value is not None:
                return value
    return None


def _text(value: Any) -> str | None:
    if isinstance(value, str) and value.strip():
        return value[:_LONGEST]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(value: Any) -> float | None:
    if isinstance(value, str):
        value = float(value) if re.fullmatch(r"\d{1,15}(\.\d+)?", value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < 1e15 else None


def _grpc_code(value: Any) -> int | None:
    if isinstance(value, str) and not value.isdecimal():
        return _GRPC_NAMES.get(value.lower(), 2)
    code = _count(value)
    return None if code is None else int(code)


_Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Key:
    """Which fact an attribute tells, and how many names of the same come before it."""

    name: str
    rank: int
    read: _Read


def _keys(names: Mapping[str, tuple[str, ...]], read: _Read) -> dict[str, _Key]:
    return {
        key: _Key(name, rank, read) for name, keys in names.items() for rank, key in enumerate(keys)
    }


_LAST: Final = 1_000
_RESOURCE_KEYS: Final = _keys(_RESOURCE, _text)
_SPAN_KEYS: Final = _keys(_TEXTS, _text) | _keys(_COUNTS, _count)
