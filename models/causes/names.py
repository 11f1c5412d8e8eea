"""What a stage or covariate is, by the words of its name.

A name is only where the evidence is looked for: no cause is claimed for a name alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum
from typing import Final

from tailbudget.schemas.records import NO_PART
from tailbudget.schemas.summary import FAILED, TOTAL, UNATTRIBUTED

NO_COMPONENT: Final = (TOTAL, FAILED, UNATTRIBUTED, *sorted(NO_PART))

_WAITING: Final = frozenset({
    "queue", "queued", "queueing", "queuing", "wait", "waiting", "backlog", "pending",
    "admission", "throttle", "throttled", "semaphore", "lock", "permit", "pool", "schedule",
    "batching",
})  # fmt: skip
"""Time in which nothing is done for the request: it waits for a slot, a lock or a connection.
"schedule" is `schedule_wait`, from the scheduled start to admission; "batching" is the wait for
a batch to fill."""

_EXTERNAL: Final = frozenset({
    "retrieve", "retrieval", "retriever", "lookup", "fetch", "download",  # data from afar
    "http", "https", "grpc", "rpc", "network", "dns", "tls",  # the way there
    "db", "database", "sql", "redis", "memcached", "dynamo", "dynamodb", "postgres", "mysql",
    "feature", "features", "vector", "elasticsearch", "s3", "blob", "storage",  # stores
    "api", "tool", "tools", "upstream", "downstream", "external", "remote", "dependency",
    "provider", "auth",  # other services
})  # fmt: skip
"""Time in which another process works: a store, a service, or the network to it."""

_FANOUT: Final = frozenset({
    "fanout", "fan", "candidates", "candidate", "shards", "shard", "documents", "document",
    "docs", "doc", "passages", "branches", "calls", "subqueries", "subrequests", "hops",
    "partitions",
})  # fmt: skip
"""How many calls one request makes, rather than how large its input is."""

_LOAD: Final = frozenset({
    "inflight", "concurrency", "concurrent", "running", "active", "utilization", "utilisation",
    "occupancy", "backlog", "queue", "queued", "waiting", "pending", "load", "rps", "qps",
})  # fmt: skip
"""What others do at the same time, rather than what the request is."""

_HIT: Final = frozenset({"hit", "hits", "miss", "misses", "cached"})

_TRUE: Final = frozenset({"true", "1", "yes", "y", "hit", "1.0", "t"})
_FALSE: Final = frozenset({"false", "0", "no", "n", "miss", "0.0", "f"})

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


class Role(StrEnum):
    """What a covariate says."""

    SHAPE = "shape"
    FANOUT = "fanout"
    LOAD = "load"
    FLAG = "flag"


def is_waiting(stage: str) -> bool:
    """Tell whether a stage is waiting."""
    return bool(_words(stage) & _WAITING)


def is_external(stage: str, declared: Collection[str] = ()) -> bool:
    """Tell whether a stage is a call to another process, by its name or because a user says so."""
    return stage in declared or (bool(_words(stage) & _EXTERNAL) and not is_waiting(stage))


def is_flag(name: str) -> bool:
    """Tell whether a covariate or cohort dimension says if a cache had the answer."""
    return bool(_words(name) & _HIT)


def role(covariate: str) -> Role:
    """Return what a covariate says; what no name tells is the shape of the input."""
    words = _words(covariate)
    if words & _HIT:
        return Role.FLAG
    if words & _LOAD or {"in", "flight"} <= words:
        return Role.LOAD
    return Role.FANOUT if words & _FANOUT else Role.SHAPE


def is_miss(dimension: str, value: str) -> bool | None:
    """Tell whether a value of a flag means a miss; None when it says neither."""
    said = value.strip().lower()
    inverted = bool(_words(dimension) & {"miss", "misses"}) and said not in ("hit", "miss")
    if said in _TRUE:
        return inverted
    return not inverted if said in _FALSE else None


def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))
