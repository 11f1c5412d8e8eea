"""Access logs of Traefik, as JSON or in its common format.

In JSON `Duration` and `OriginDuration` are nanoseconds, and a retry is one request with
`RetryAttempts`; in text the last field is milliseconds, and a line is stamped with the start.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from tailbudget.streams.sources.access_log import (
    AccessLog,
    iso,
    number,
    request_of,
    route_of,
    told,
)
from tailbudget.streams.sources.translated import NotOfFormatError

_QUOTED: Final = r'"((?:[^"\\]|\\.)*+)"'
_LINE: Final = re.compile(
    rf"\S+ - \S+ \[([^\]]+)\] {_QUOTED} (\d+|-) (\d+|-) {_QUOTED} {_QUOTED} \d+"
    rf" (?:{_QUOTED}|-) (?:{_QUOTED}|-) (\d+)ms"
)
_NS_PER_MS: Final = 1e6


class TraefikDecoder(AccessLog):
    """Decodes access logs of Traefik; see the package docstring for what it promises."""

    name = "traefik"

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        return _of_json(line) if line.startswith("{") else _of_text(line)


def _of_json(line: str) -> dict[str, Any]:
    try:
        values = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise NotOfFormatError(f"no JSON: {error}") from None
    if not isinstance(values, dict) or "Duration" not in values:
        raise NotOfFormatError("no line of Traefik: it has no Duration")
    retries = number(values.get("RetryAttempts"))
    return {
        "request_id": told(values.get("request_X-Request-Id")),
        "timestamp": told(values.get("StartUTC") or values.get("StartLocal")),
        "total_ms": _ms(values["Duration"]),
        "status": told(values.get("DownstreamStatus"))
        if values.get("DownstreamStatus")
        else "error",
        "upstream": told(values.get("ServiceName")),
        "instance_id": told(values.get("ServiceAddr")),
        "method": told(values.get("RequestMethod")),
        "route": route_of(told(values.get("RequestPath"))),
        "payload_bytes": number(values.get("RequestContentSize")),
        "upstream_ms": _ms(values.get("OriginDuration")),
        "upstream_attempts": None if retries is None else retries + 1,
    }


def _of_text(line: str) -> dict[str, Any]:
    found = _LINE.fullmatch(line)
    if found is None:
        raise NotOfFormatError("no line of Traefik's common format")
    time, request, code, _, _, _, router, url, total = found.groups()
    return {
        "timestamp": iso(time),
        "total_ms": number(total),
        "status": told(code) or "error",
        "upstream": told(router),
        "instance_id": told(url),
        **request_of(request),
    }


def _ms(nanoseconds: Any) -> float | None:
    found = number(nanoseconds)
    return None if found is None else found / _NS_PER_MS
