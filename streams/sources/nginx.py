"""Access logs of nginx: of its ingress, the combined format with times, JSON, or any `log_format`.

`$request_time` is seconds from the first byte of the request to the log entry after the last byte
to the client; the entry is stamped then, so that the request began so much earlier. An upstream's
variable lists its tries, ", " between servers and " : " where the request was redirected inside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from tailbudget.streams.sources.access_log import (
    AccessLog,
    before,
    iso,
    milliseconds,
    number,
    request_of,
    route_of,
    told,
    upstreams,
)
from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.log_pattern import NGINX, compiled
from tailbudget.streams.sources.translated import NotOfFormatError

_COMBINED: Final = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'
    ' "$http_referer" "$http_user_agent"'
)
KNOWN: Final = (
    _COMBINED + " $request_length $request_time [$proxy_upstream_name]"
    " [$proxy_alternative_upstream_name] $upstream_addr $upstream_response_length"
    " $upstream_response_time $upstream_status $req_id",
    _COMBINED + ' "$http_x_forwarded_for" $request_time $upstream_response_time',
    _COMBINED + ' "$http_x_forwarded_for" $request_time',
    _COMBINED + " $request_time $upstream_response_time",
    _COMBINED + " $request_time",
)
"""Formats that need not be named: that of the ingress controller, and the usual extensions."""

_PAIRS: Final = re.compile(
    r'(?<!\S)(\w++)=(?:"([^"]*+)"|((?:[^\s,"]++, (?![a-z]+=))*+[^\s,"]*+)),?(?!\S)'
)
_NAMES: Final = {
    "rt": "request_time",
    "uct": "upstream_connect_time",
    "uht": "upstream_header_time",
    "urt": "upstream_response_time",
    "us": "upstream_status",
    "ua": "upstream_addr",
}
"""What the usual `rt=$request_time uct="$upstream_connect_time" …` stands for."""

_IDS: Final = ("req_id", "request_id", "http_x_request_id")


class NginxDecoder(AccessLog):
    """Decodes access logs of nginx; see the package docstring for what it promises."""

    name = "nginx"
    says = ("requests of nginx begin at the time of their line less the request time",)

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        formats = KNOWN if rules.pattern is None else (rules.pattern,)
        self._patterns = [compiled(one, NGINX) for one in formats]

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        values = _json(line) if line.startswith("{") else self._match(line)
        total_ms = milliseconds(values.get("request_time"))
        if total_ms is None and "request_time" not in values:
            raise NotOfFormatError("no line of nginx with a request_time")
        length = number(values.get("request_length"))
        return {
            "request_id": next((told(values[n]) for n in _IDS if told(values.get(n))), None),
            "timestamp": before(_end(values), total_ms),
            "total_ms": total_ms,
            "status": told(values.get("status")),
            "payload_bytes": length,
            "upstream": told(values.get("proxy_upstream_name")),
            "instance_id": _last(values.get("upstream_addr")),
            **_request(values),
            **_stages(values),
        }

    def _match(self, line: str) -> Mapping[str, Any]:
        for one in self._patterns:
            found = one.match(line)
            if found is not None and _is_time(found.get("request_time")):
                return found
        found = _with_pairs(line) if self.rules.pattern is None else None
        if found is None:
            raise NotOfFormatError("not of the log format; give that of nginx.conf")
        return found


def _json(line: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise NotOfFormatError(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise NotOfFormatError("JSON, but no object")
    return found


def _with_pairs(line: str) -> Mapping[str, Any] | None:
    """Return the values of a combined line that goes on in pairs such as rt=0.1."""
    begin = compiled(_COMBINED, NGINX)
    found = begin.regex.match(line)
    if found is None:
        return None
    pairs = {
        _NAMES[key]: quoted or plain
        for key, quoted, plain in _PAIRS.findall(line[found.end() :])
        if key in _NAMES
    }
    if "request_time" not in pairs:
        return None
    return {**dict(zip(begin.names, found.groups(), strict=True)), **pairs}


def _is_time(value: str | None) -> bool:
    return value is None or number(value) is not None or told(value) is None


def _end(values: Mapping[str, Any]) -> str | None:
    local = told(values.get("time_local"))
    for found in (values.get("msec"), values.get("time_iso8601"), local and iso(local)):
        if told(found) is not None:
            return str(found)
    return None


def _request(values: Mapping[str, Any]) -> Mapping[str, Any]:
    if told(values.get("request")) is not None:
        return request_of(str(values["request"]))
    path = values.get("uri", values.get("request_uri"))
    return {"method": told(values.get("request_method")), "route": route_of(told(path))}


def _stages(values: Mapping[str, Any]) -> Mapping[str, Any]:
    found = dict(upstreams(_times(values.get("upstream_response_time"))))
    connect = [ms for group in _times(values.get("upstream_connect_time")) for ms in group]
    known = [ms for ms in connect if ms is not None]
    if known and found.get("upstream_ms") is not None and connect[-1] is not None:
        found["upstream_connect_ms"] = connect[-1]
        found["upstream_ms"] = max(found["upstream_ms"] - connect[-1], 0.0)
    return found


def _times(value: Any) -> list[list[float | None]]:
    """Return milliseconds by redirect and try; the tries of "0.1, 0.2 : 0.3" are [[2], [1]]."""
    if told(value) is None:
        return []
    groups = re.split(r"\s+:\s+", str(value))
    return [[milliseconds(one) for one in group.split(",")] for group in groups]


def _last(value: Any) -> str | None:
    """Return the server that answered at last."""
    return told(re.split(r",\s+|\s+:\s+", str(value or ""))[-1])
