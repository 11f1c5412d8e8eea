"""What a decoder is given, how it is told to read a service's records, and what it promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.records import Decoded
from tailbudget.streams.sources.mapping import Mapped


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """One Kafka message, or one line of a file.

    Attributes:
        value: one record, or several separated by newlines; None is a tombstone.
        offset: offset in the source partition, or line number in a file.
        arrival_ns: when it arrived, nanoseconds since the epoch.
    """

    value: bytes | None
    offset: int
    arrival_ns: int


@dataclass(frozen=True, slots=True)
class SourceBatch(Sequence[SourceMessage]):
    """Messages as columns: what a poll brings, without an object a message.

    Attributes:
        values: [n] values of the messages.
        offset: [n] their offsets.
        arrival_ns: [n] when they arrived.
    """

    values: list[bytes | None]
    offset: NDArray[np.int64]
    arrival_ns: NDArray[np.int64]

    @classmethod
    def of(cls, messages: Sequence[SourceMessage]) -> SourceBatch:
        """Return messages as columns; what is so already is returned as it is."""
        if isinstance(messages, cls):
            return messages
        size = len(messages)
        return cls(
            [message.value for message in messages],
            np.fromiter(map(attrgetter("offset"), messages), np.int64, size),
            np.fromiter(map(attrgetter("arrival_ns"), messages), np.int64, size),
        )

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, index: int) -> SourceMessage: ...
    @overload
    def __getitem__(self, index: slice) -> SourceBatch: ...
    def __getitem__(self, index: int | slice) -> SourceMessage | SourceBatch:
        if isinstance(index, slice):
            return SourceBatch(self.values[index], self.offset[index], self.arrival_ns[index])
        return SourceMessage(
            self.values[index], int(self.offset[index]), int(self.arrival_ns[index])
        )


@dataclass(frozen=True, slots=True)
class ServiceRules:
    """How one service's records are read.

    Attributes:
        covariates: columns of the input shape, such as "sequence_length".
        cohort_dims: columns whose values make a cohort, in the order of the cohort's pairs.
        stages: names of the stages, without "_ms"; None takes every "*_ms" column.
    """

    covariates: tuple[str, ...] = ()
    cohort_dims: tuple[str, ...] = ()
    stages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """The column of a source that stands for one of ours.

    Attributes:
        column: its name in the source.
        unit: "ns", "us", "ms" or "s"; other than "ms" only for a duration.
    """

    column: str
    unit: str = "ms"


@dataclass(frozen=True, slots=True)
class Rules:
    """How the records of one source are read.

    Attributes:
        service: the service of records that name none.
        default: rules of every service that `services` does not name.
        services: rules by service.
        max_record_bytes: a longer record is rejected unread.
        max_future_ns: how far a record's time may lie after its arrival.
        columns: where our columns have other names or units in the source, by our name.
        timezone: IANA zone of the times that name none; None is UTC.
        ids_from_rows: a record without an id has its offset for one.
        times_from_arrival: a record without a timestamp happened when it arrived.
        mapping: how records are made of what the source has; None where they are native.
        pattern: the format of the lines of an access log, as its proxy is configured with; None
            tries those that are common.
        trace_wait_ns: how much younger than the end of a trace a span must be for the trace to be
            judged; None waits for the end of the source, as for a file.
    """

    service: str | None = None
    default: ServiceRules = field(default_factory=ServiceRules)
    services: Mapping[str, ServiceRules] = field(default_factory=dict)
    max_record_bytes: int = 1_000_000
    max_future_ns: int = 60_000_000_000
    columns: Mapping[str, Origin] = field(default_factory=dict)
    timezone: str | None = None
    ids_from_rows: bool = False
    times_from_arrival: bool = False
    mapping: Mapped | None = None
    pattern: str | None = None
    trace_wait_ns: int | None = None

    def origin(self, name: str) -> str:
        """Return the name in the source of one of our columns."""
        return self.columns[name].column if name in self.columns else name

    def ours(self, column: str) -> tuple[str, ...]:
        """Return which of our columns a column of the source stands for."""
        named = tuple(name for name, origin in self.columns.items() if origin.column == column)
        return named or (() if column in self.columns else (column,))

    def of(self, service: str) -> ServiceRules:
        """Return the rules of `service`."""
        return self.services.get(service, self.default)

    def covariates(self, service: str) -> tuple[str, ...]:
        """Return the covariates of `service`."""
        return self.of(service).covariates

    def cohort_dims(self, service: str) -> tuple[str, ...]:
        """Return the cohort dimensions of `service`."""
        return self.of(service).cohort_dims

    def stages(self, service: str) -> tuple[str, ...] | None:
        """Return the stages of `service`; None is every "*_ms" column."""
        return self.of(service).stages

    def all(self) -> tuple[ServiceRules, ...]:
        """Return the rules of every service, the default first."""
        return (self.default, *self.services.values())


class Decoder(Protocol):
    """Turns messages of one format into columns; see the package docstring for its promises.

    Attributes:
        name: the format, as the settings name it.
        says: what a reader of a report must know of all logs of the format.
        tool: what writes aggregates of the same form, for the refusal of those.
    """

    name: str
    says: tuple[str, ...]
    tool: str | None

    def __init__(self, rules: Rules) -> None: ...

    @property
    def first_offset(self) -> int | None:
        """Offset of the oldest message of which something is held; None where nothing is.

        What is held after a message depends on the messages from there on, and on nothing else.
        """
        ...

    def decode(self, messages: Sequence[SourceMessage]) -> Decoded:
        """Decode one micro-batch; never raises for what a message contains."""
        ...

    def finish(self) -> Decoded | None:
        """Decode what is held, for no more messages will come; None where nothing ever is."""
        ...

    @classmethod
    def natives(cls, values: Sequence[bytes], rules: Rules) -> list[bytes]:
        """Return the records of messages that stand for themselves, as native records."""
        ...
