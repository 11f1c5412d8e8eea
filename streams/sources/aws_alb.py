"""Access logs of AWS's application load balancer.

Three times in seconds make up a request: until it was sent to the target, until the target began to
answer, and until the answer was passed on. Any of them is -1 where it did not come so far; then the
request took from its creation to the time of the line. Fields as in AWS's documentation of the
log, in their order; what newer versions add behind them is passed over.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tailbudget.streams.sources.access_log import (
    AccessLog,
    milliseconds,
    number,
    request_of,
    told,
)
from tailbudget.streams.sources.timetext import UNREADABLE, epoch_ns
from tailbudget.streams.sources.translated import NotOfFormatError

_FIELD: Final = re.compile(r'"((?:[^"\\]|\\.)*+)"|(\S++)')
_NAMES: Final = [
    "type",
    "time",
    "elb",
    "client",
    "target",
    "request_processing",
    "target_processing",
    "response_processing",
    "code",
    "target_code",
    "received",
    "sent",
    "request",
    "user_agent",
    "cipher",
    "protocol",
    "target_group",
    "trace_id",
]
_TYPES: Final = frozenset({"http", "https", "h2", "grpcs", "ws", "wss"})
_CREATED: Final = 21
"""Place of request_creation_time."""

_STAGES: Final = ("request_processing", "target_processing", "response_processing")
_CANCELLED: Final = "460"
_NS_PER_MS: Final = 1e6


class AwsAlbDecoder(AccessLog):
    """Decodes access logs of AWS's load balancer; see the package docstring for its promises."""

    name = "aws_alb"

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        cells = [quoted or plain for quoted, plain in _FIELD.findall(line)]
        if len(cells) <= len(_NAMES) or cells[0] not in _TYPES:
            raise NotOfFormatError("no line of an application load balancer")
        values = dict(zip(_NAMES, cells, strict=False))
        created = told(cells[_CREATED]) if len(cells) > _CREATED else None
        parts = {name: milliseconds(values[name]) for name in _STAGES}
        known = [ms for ms in parts.values() if ms is not None]
        whole = len(known) == len(_STAGES)
        total_ms = round(sum(known), 6) if whole else _between(created, values["time"])
        code = values["code"]
        return {
            "request_id": told(values["trace_id"]),
            "timestamp": created or values["time"],
            "total_ms": total_ms,
            "status": "cancelled" if code == _CANCELLED else told(code) or "error",
            "payload_bytes": number(values["received"]),
            "upstream": told(values["target_group"].rpartition(":targetgroup/")[2]),
            "instance_id": told(values["target"]),
            **request_of(values["request"]),
            **{f"{name}_ms": ms for name, ms in parts.items()},
        }


def _between(start: str | None, end: str) -> float | None:
    begun, ended = epoch_ns(start or ""), epoch_ns(end)
    if UNREADABLE in {begun, ended}:
        return None
    return (ended - begun) / _NS_PER_MS
