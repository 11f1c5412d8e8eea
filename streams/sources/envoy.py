"""Access logs of Envoy and Istio, as text or JSON.

A line is stamped with the start; `%DURATION%` is milliseconds to the last byte. The stage
`upstream` is `x-envoy-upstream-service-time`, which Envoy measures over all tries of an upstream.
Response flags tell how a request ended where its code does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from tailbudget.streams.sources.access_log import AccessLog, number, route_of, told
from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.log_pattern import ENVOY, compiled
from tailbudget.streams.sources.translated import NotOfFormatError

_BEGIN: Final = (
    '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%"'
    " %RESPONSE_CODE% %RESPONSE_FLAGS% "
)
_COUNTS: Final = (
    "%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%"
    ' "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%"'
    ' "%UPSTREAM_HOST%"'
)
KNOWN: Final = (
    _BEGIN + _COUNTS,
    _BEGIN + '%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS%'
    ' "%UPSTREAM_TRANSPORT_FAILURE_REASON%" ' + _COUNTS + " %UPSTREAM_CLUSTER%"
    " %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS%"
    " %REQUESTED_SERVER_NAME% %ROUTE_NAME%",
)  # fmt: skip
"""Envoy's default format, and Istio's."""

_FLAGS: Final = {
    "UT": "timeout",
    "SI": "timeout",
    "DT": "timeout",
    "DC": "cancelled",
    "UO": "rejected",
    "RL": "rejected",
    "UMSDR": "timeout",
}
"""Outcomes by response flag: of the documentation of Envoy's access log."""

_KEYS: Final = {
    "start": ("start_time", "START_TIME"),
    "total": ("duration", "DURATION"),
    "upstream": ("upstream_service_time", "RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)"),
    "first": ("response_duration", "RESPONSE_DURATION"),
    "code": ("response_code", "RESPONSE_CODE"),
    "flags": ("response_flags", "RESPONSE_FLAGS"),
    "path": ("path", "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)", "REQ(:PATH)"),
    "method": ("method", "REQ(:METHOD)"),
    "id": ("request_id", "REQ(X-REQUEST-ID)"),
    "cluster": ("upstream_cluster", "UPSTREAM_CLUSTER"),
    "host": ("upstream_host", "UPSTREAM_HOST"),
    "received": ("bytes_received", "BYTES_RECEIVED"),
    "attempts": ("upstream_request_attempt_count", "UPSTREAM_REQUEST_ATTEMPT_COUNT"),
}


class EnvoyDecoder(AccessLog):
    """Decodes access logs of Envoy; see the package docstring for what it promises."""

    name = "envoy"

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        formats = KNOWN if rules.pattern is None else (rules.pattern,)
        self._patterns = [compiled(one, ENVOY) for one in formats]

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        values = _json(line) if line.startswith("{") else self._match(line)
        if _value(values, "total") is None or _value(values, "start") is None:
            raise NotOfFormatError("no line of Envoy with a start and a duration")
        return {
            "request_id": told(_value(values, "id")),
            "timestamp": told(_value(values, "start")),
            "total_ms": number(_value(values, "total")),
            "status": _status(_value(values, "code"), _value(values, "flags")),
            "payload_bytes": number(_value(values, "received")),
            "upstream": told(_value(values, "cluster")),
            "instance_id": told(_value(values, "host")),
            "method": told(_value(values, "method")),
            "route": route_of(told(_value(values, "path"))),
            "upstream_ms": number(_value(values, "upstream")),
            "upstream_attempts": number(_value(values, "attempts")),
        }

    def _match(self, line: str) -> Mapping[str, Any]:
        for one in self._patterns:
            found = one.match(line)
            if found is not None:
                return found
        raise NotOfFormatError("not of the log format; give that of Envoy's text_format")


def _json(line: str) -> Mapping[str, Any]:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise NotOfFormatError(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise NotOfFormatError("JSON, but no object")
    return found


def _value(values: Mapping[str, Any], name: str) -> Any:
    return next((values[key] for key in _KEYS[name] if values.get(key) is not None), None)


def _status(code: Any, flags: Any) -> str:
    """Return how a request ended; a flag counts more than the code, which may be sent before."""
    known = [_FLAGS[flag] for flag in re.split(r"[,\s]+", told(flags) or "") if flag in _FLAGS]
    sent = int(number(code) or 0)
    return known[0] if known else str(sent) if sent else "error"
