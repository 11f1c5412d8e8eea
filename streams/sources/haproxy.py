"""HTTP logs of HAProxy, as it writes them itself or syslog does.

Five timers in milliseconds: receiving the request (TR), waiting in queues (Tw), connecting (Tc),
the server's answer (Tr), and all of it (Ta, or Tt before version 1.7); -1 where it did not come so
far. A total with a "+" was logged before the end (`option logasap`), and is none. The request began
at the date in brackets, in the proxy's own zone.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tailbudget.streams.sources.access_log import AccessLog, iso, number, request_of, told
from tailbudget.streams.sources.translated import NotOfFormatError

_LINE: Final = re.compile(
    r"(?<!\S)\S+:\d{1,5} \[(?P<date>[^\]]{1,40})\] \S+ (?P<backend>[^/\s]+)/(?P<server>\S+)"
    r" (?P<timers>-?\d+/-?\d+/-?\d+/-?\d+/\+?-?\d+) (?P<code>-?\d+) \+?(?P<bytes>-?\d+) \S+ \S+"
    r" (?P<state>[\w-]{2,4}) \d+/\d+/\d+/\d+/(?P<retries>\+?\d+) \d+/\d+(?: \{[^}]*\}){0,2}"
    r' "(?P<request>[^"]*)"?'
)
_STAGES: Final = ("receive", "queue", "connect", "server")
_STATES: Final = {
    "C": "cancelled",
    "c": "cancelled",
    "s": "timeout",
}
"""Outcomes by the first letter of the termination state: the client left or timed out, the server
timed out. Others are told by the code."""


class HaproxyDecoder(AccessLog):
    """Decodes HTTP logs of HAProxy; see the package docstring for what it promises."""

    name = "haproxy"

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        found = _LINE.search(line)
        if found is None:
            raise NotOfFormatError("no line of HAProxy's HTTP log")
        *parts, total = found["timers"].split("/")
        times = [number(part) for part in parts]
        total_ms = None if total.startswith("+") else number(total)
        known = [ms for ms in times if ms is not None]
        rest = None
        if total_ms is not None and len(known) == len(_STAGES) and sum(known) <= total_ms:
            rest = total_ms - sum(known)
        tries = number(found["retries"].lstrip("+"))
        return {
            "timestamp": iso(found["date"]),
            "total_ms": total_ms,
            "status": _STATES.get(found["state"][0]) or told(found["code"]) or "error",
            "upstream": found["backend"],
            "instance_id": told(found["server"].replace("<NOSRV>", "-")),
            "upstream_attempts": None if tries is None else tries + 1,
            **request_of(found["request"]),
            **{f"{name}_ms": ms for name, ms in zip(_STAGES, times, strict=True)},
            "transfer_ms": rest,
        }
