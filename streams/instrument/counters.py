"""What became of the records of a producer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from threading import RLock
from types import MappingProxyType
from typing import Final

FULL: Final = "full"
BUFFER: Final = "buffer"
UNDELIVERED: Final = "undelivered"
NO_JSON: Final = "no_json"
OVERSIZE: Final = "oversize"
CLOSED: Final = "closed"
FAILED: Final = "failed"

DROPS: Final[Mapping[str, str]] = MappingProxyType(
    {
        FULL: "the queue was full: more requests ended than the thread could take",
        BUFFER: "the Kafka client's buffer was full: the broker is away, or too slow",
        UNDELIVERED: "the broker refused the message, or did not acknowledge it in time",
        NO_JSON: "the request's id has no JSON form",
        OVERSIZE: "the record is larger than readers take",
        CLOSED: "the request ended after the producer was closed",
        FAILED: "an error that was not foreseen, and is logged",
    }
)
"""Why a record is dropped, by reason."""


@dataclass(frozen=True, slots=True)
class ProducerStats:
    """Counts of records since the producer was made, or since the process was forked.

    At rest, `offered` is the sum of `sampled_out`, `delivered`, `pending` and `dropped`.

    Attributes:
        offered: requests that ended.
        sampled_out: left out by sampling.
        delivered: acknowledged by the broker.
        pending: in the queue, or on the way to the broker.
        messages: that the delivered ones travelled in.
        lost_columns: cells left out of records, for want of a JSON form or for a reserved name.
        dropped: records lost, by reason; `DROPS` says what the reasons mean.
        last_error: what the Kafka client said last; None while all is well.
    """

    offered: int
    sampled_out: int
    delivered: int
    pending: int
    messages: int
    lost_columns: int
    dropped: Mapping[str, int]
    last_error: str | None


class Counters:
    """Counts that several threads write; none waits for more than an addition."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin at zero, with a lock that nobody holds: a fork may have copied a held one."""
        self._lock = RLock()
        self._counts: dict[str, int] = dict.fromkeys(
            ("sampled_out", "taken", "delivered", "messages", "lost_columns"), 0
        )
        self._dropped: dict[str, int] = {}
        self._logged: set[str] = set()
        self.last_error: str | None = None

    def add(self, name: str, records: int = 1) -> None:
        """Count one of those that begin at zero above; "taken" is taken from the queue."""
        with self._lock:
            self._counts[name] += records

    def drop(self, reason: str, records: int = 1) -> None:
        """Count records that are lost."""
        with self._lock:
            self._dropped[reason] = self._dropped.get(reason, 0) + records

    def news(self) -> list[str]:
        """Return the reasons that have turned up since the last call."""
        with self._lock:
            new = [reason for reason in self._dropped if reason not in self._logged]
            self._logged.update(new)
            return new

    def stats(self, queued: int) -> ProducerStats:
        """Return the counts, where `queued` records wait to be taken."""
        with self._lock:
            counts, dropped = dict(self._counts), dict(self._dropped)
        refused = dropped.get(FULL, 0) + dropped.get(CLOSED, 0)  # never in the queue
        done = counts["delivered"] + sum(dropped.values()) - refused
        return ProducerStats(
            offered=counts["sampled_out"] + counts["taken"] + queued + refused,
            sampled_out=counts["sampled_out"],
            delivered=counts["delivered"],
            pending=counts["taken"] + queued - done,
            messages=counts["messages"],
            lost_columns=counts["lost_columns"],
            dropped=MappingProxyType(dropped),
            last_error=self.last_error,
        )
