"""What a finished request is, and what takes it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from tailbudget.streams.instrument.outcome import Status
from tailbudget.streams.instrument.spans import Spans

Column = str | int | float | datetime | None
"""What a column of a record may hold."""


class Finished(NamedTuple):
    """A request that has ended; a tuple, for it is made while the request waits.

    Attributes:
        request_id: unique among the requests of a topic.
        started_ns: when it began, by the wall clock, nanoseconds since the epoch.
        status: how it ended.
        columns: covariates, cohort dimensions and what else the record shall carry.
        spans: its times, frozen.
        weight: requests that it stands for.
    """

    request_id: str
    started_ns: int
    status: Status
    columns: dict[str, Column]
    spans: Spans
    weight: int = 1


class Sink(Protocol):
    """Takes finished requests: a `RecordProducer`, or a `Collector` in tests."""

    def send(self, record: Finished) -> None:
        """Take one; must neither wait nor raise, for the service's request waits for it."""
