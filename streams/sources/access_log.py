"""What the access logs of proxies have in common.

A row is one request of a client. Tries of its upstreams are attempts of that request: the last one
is the stage `upstream`, the earlier ones are `upstream_retry`. "-" and -1 are missing. Proxies pass
ids of requests on, so that a client's retry or a second hop has the same one: an id is told apart
by its line, and only a line that came twice is a redelivery.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.timetext import UNREADABLE, epoch_ns
from tailbudget.streams.sources.trace_facts import without_ids
from tailbudget.streams.sources.translated import NotOfFormatError, Translated

MAX_LINE: Final = 65_536
"""Bytes of a line; proxies refuse requests of which the line would be longer."""

_YEAR: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTHS: Final = tuple(_YEAR[at : at + 3] for at in range(0, 36, 3))
_CLF: Final = re.compile(
    r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d:\d\d:\d\d(?:\.\d+)?)(?: ([+-]\d\d):?(\d\d))?", re.ASCII
)
_NUMBER: Final = re.compile(r"\d{1,15}(\.\d*)?|\.\d+", re.ASCII)
_NS_PER_MS: Final = 1e6
_MISSING: Final = frozenset({"", "-", "-1", "null", "None"})


class AccessLog(Translated):
    """Decodes the access log of a proxy, a request a line."""

    @classmethod
    def altered(cls, rules: Rules) -> Rules:
        """Return the rules for the native records; rows without an id are numbered."""
        most = min(rules.max_record_bytes, MAX_LINE)
        return replace(super().altered(rules), ids_from_rows=True, max_record_bytes=most)

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line.

        Raises:
            NotOfFormatError: it is none of the format.
        """
        raise NotImplementedError

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native record of a line."""
        record = {k: v for k, v in self.parse(as_text(text)).items() if v is not None}
        if "request_id" in record:
            mark = hashlib.blake2b(text.strip(), digest_size=6).hexdigest()
            record["request_id"] = f"{record['request_id']}-{mark}"
        return (orjson.dumps(record),)

    @classmethod
    def recognises(cls, line: str) -> bool:
        """Return whether a line is surely of the format."""
        try:
            record = cls(Rules()).parse(line)
        except NotOfFormatError:
            return False
        return record.get("timestamp") is not None


def as_text(line: bytes) -> str:
    """Return a line as text; what is no UTF-8 in it, such as an odd path, is replaced."""
    return line.decode(errors="replace").strip()


def iso(time: str) -> str | None:
    """Return the time of a common log as RFC 3339; without a zone where it has none."""
    found = _CLF.fullmatch(time)
    if found is None or found[2] not in _MONTHS:
        return None
    zone = f"{found[5]}:{found[6]}" if found[5] else ""
    return f"{found[3]}-{_MONTHS.index(found[2]) + 1:02}-{found[1]}T{found[4]}{zone}"


def before(end: str | None, total_ms: float | None) -> int | str | None:
    """Return when a request began that ended at `end`, for logs that stamp the end."""
    if end is None or total_ms is None:
        return end
    end_ns = epoch_ns(end)
    return end if end_ns == UNREADABLE else end_ns - round(total_ms * _NS_PER_MS)


def number(text: Any) -> float | None:
    """Return a number that is not negative; None where it is missing, or none."""
    if isinstance(text, str):
        text = text.strip()
        return float(text) if _NUMBER.fullmatch(text) else None
    if isinstance(text, bool) or not isinstance(text, int | float):
        return None
    return float(text) if text >= 0 else None


def milliseconds(seconds: Any) -> float | None:
    """Return seconds as milliseconds, to the microsecond that proxies write at most."""
    found = number(seconds)
    return None if found is None else round(found * 1e3, 6)


def told(value: Any) -> str | None:
    """Return a text that says something."""
    text = str(value).strip() if value is not None else ""
    return None if text in _MISSING else text


def request_of(request: str | None) -> dict[str, Any]:
    """Return method and route of a request line; ids and the query are left out."""
    parts = (request or "").split(" ")
    if len(parts) < 2:
        return {}
    return {"method": parts[0][:16], "route": route_of(parts[1])}


def route_of(path: str | None) -> str | None:
    """Return a path without host, query and ids."""
    if told(path) is None:
        return None
    bare = re.sub(r"^[a-z]+://[^/]*", "", str(path), flags=re.IGNORECASE)
    return without_ids(bare.split("?")[0] or "/")


def upstreams(times_ms: Iterable[Iterable[float | None]]) -> Mapping[str, Any]:
    """Return the stages of the tries of upstreams, in groups: a redirect begins a new one."""
    groups = [list(group) for group in times_ms]
    tries = [time for group in groups for time in group]
    if not any(time is not None for time in tries):
        return {}
    last = [group[-1] for group in groups if group]
    earlier = [time for group in groups for time in group[:-1] if time is not None]
    moved = [time for time in last[:-1] if time is not None]
    return {
        "upstream_ms": last[-1],
        "upstream_retry_ms": sum(earlier) if earlier else None,
        "upstream_redirect_ms": sum(moved) if moved else None,
        "upstream_attempts": len(tries),
    }
