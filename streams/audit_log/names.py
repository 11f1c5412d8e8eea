"""What the name of a column suggests; only names that say it plainly are taken at their word."""

from __future__ import annotations

import re
from typing import Final

from tailbudget.schemas.cohorts import INSTANCE_WORDS

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_SIZES: Final = frozenset(
    {
        "token",
        "tokens",
        "length",
        "len",
        "size",
        "count",
        "bytes",
        "byte",
        "pixels",
        "pixel",
        "batch",
        "rows",
        "row",
    }
)
_IDS: Final = frozenset(
    {
        "id",
        "ids",
        "uuid",
        "guid",
        "hash",
        "digest",
        "trace",
        "span",
        "session",
        "user",
        "email",
        "ip",
    }
)
_OUTCOMES: Final = frozenset(
    {
        "error",
        "err",
        "errors",
        "message",
        "msg",
        "exception",
        "reason",
        "text",
        "prompt",
        "query",
        "url",
        "uri",
        "time",
        "date",
        "ts",
        "at",
    }
)
_RATES: Final = frozenset({"per", "rate", "throughput", "ratio", "pct", "percent"})
_LATENCIES: Final = frozenset({"latency", "duration", "elapsed", "total", "e2e", "took", "rt"})
_PARTS: Final = frozenset(
    {"ttft", "first", "token", "queue", "wait", "inter", "per", "schedule", "timeout"}
)
_ORDINALS: Final = frozenset({"number", "no", "num", "index", "idx", "key"})
_UNITS: Final = {
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "ms": "ms", "msec": "ms", "millis": "ms", "milliseconds": "ms",
    "us": "us", "usec": "us", "micros": "us", "microseconds": "us",
    "ns": "ns", "nanos": "ns", "nanoseconds": "ns",
}  # fmt: skip


def words(name: str) -> list[str]:
    """Return the words of a name, in snake or camel case, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def unit_of(name: str) -> str | None:
    """Return the unit of time that a name ends in; None where it names none."""
    found = words(name)
    return _UNITS.get(found[-1]) if len(found) > 1 else None


def is_size(name: str) -> bool:
    """Return whether it names a count or a size of the input: no id, no time, no rate."""
    found = words(name)
    if not found or found[-1] in _ORDINALS or unit_of(name) is not None:
        return False
    return bool(_SIZES & set(found)) and not (_IDS | _RATES) & set(found)


def is_replica(name: str) -> bool:
    """Return whether it names the replica that answered."""
    return bool(set(words(name)) & INSTANCE_WORDS) and unit_of(name) is None


def is_label(name: str) -> bool:
    """Return whether its values may be labels: no ids, no free text, no outcome, no time."""
    return not set(words(name)) & (_IDS | _OUTCOMES) and unit_of(name) is None


def is_latency(name: str) -> bool:
    """Return whether it may hold the end-to-end latency: it says so, and names no part of it."""
    found = set(words(name))
    whole = found & _LATENCIES or {"response", "time"} <= found or {"request", "time"} <= found
    return bool(whole) and not found & _PARTS


def is_time(name: str) -> bool:
    """Return whether it may say when a request happened."""
    found = set(words(name))
    return bool(found & {"timestamp", "time", "ts", "date", "start", "started"}) and not (
        found & (_LATENCIES | {"response", "request"})
    )
