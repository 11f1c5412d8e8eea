"""Requests after decoding: columns, not objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.rows import DeployRow

NO_SERVICE: Final = "(none)"
"""The service of a record that names none, where the source has no default either."""


class Outcome(IntEnum):
    """How a request ended. All but OK count against the SLO."""

    OK = 0
    ERROR = 1
    TIMEOUT = 2
    CANCELLED = 3
    REJECTED = 4


SCHEDULE_WAIT: Final = "schedule_wait"
"""Stage of the time between the schedule of a request and its start."""

LOGGED: Final = "logged"
"""Stage of the total as logged, without that wait. It is no component of the total."""

TTFT: Final = "ttft"
"""Stage of the time to the first token, as the source means it."""

ITL: Final = "itl"
"""Stage of the time between two tokens or chunks, the mean of a request."""

TPOT: Final = "tpot"
"""Stage of the time of each output token, as the source means it."""

TOKEN_TIMES: Final = (TTFT, ITL, TPOT)

GOODPUT: Final = "goodput"
"""Stage of the total of a request that met all targets of its goodput."""

NO_PART: Final = frozenset({LOGGED, *TOKEN_TIMES, GOODPUT})
"""Stages that are no component of the total: they lie over its components."""

RESERVED_STAGES: Final = frozenset(
    {"total", "failed", "unattributed", SCHEDULE_WAIT, LOGGED, GOODPUT}
)
"""Stage names that we give ourselves; a record's column of such a name is not a stage."""

RETRY_WAIT: Final = "retry_wait"
"""Stage of the time between the attempts of an operation."""

ATTEMPTS: Final = "attempts"
"""Covariate of an operation of several attempts: how many. It is no shape of the input."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The decoded records of one service, n rows; missing numbers are NaN.

    Attributes:
        service: the service's name.
        cohorts: the distinct cohorts of these rows.
        cohort: [n] index into `cohorts`.
        id_hash: [n] stable hash of the request id.
        ids: [n] request ids; read for the few sampled rows only.
        ts_ns: [n] event time, nanoseconds since the epoch.
        outcome: [n] values of `Outcome`.
        total_ms: [n] end-to-end latency, from the schedule where the record carries one.
        limit_ms: [n] the caller's time limit, where the record carries one.
        weight: [n] whole requests that a row stands for (1/sampling rate); None means 1 each.
        stages: names of the stages, sorted, without "_ms".
        stage_ms: [len(stages), n] milliseconds.
        covariates: names of the input-shape dimensions, sorted.
        covariate: [len(covariates), n] values.
        offset: [n] offset in the source partition, or row number in a file.
        operation: [n] hash of the operation that a record is an attempt of, 0 where it names
            none; None when no record does.
        attempt: [n] number of the attempt from 1, 0 where it has none; None as `operation` is.
    """

    service: str
    cohorts: tuple[Cohort, ...]
    cohort: NDArray[np.int32]
    id_hash: NDArray[np.uint64]
    ids: Sequence[str]
    ts_ns: NDArray[np.int64]
    outcome: NDArray[np.int8]
    total_ms: NDArray[np.float64]
    limit_ms: NDArray[np.float64]
    weight: NDArray[np.int64] | None
    stages: tuple[str, ...]
    stage_ms: NDArray[np.float64]
    covariates: tuple[str, ...]
    covariate: NDArray[np.float64]
    offset: NDArray[np.int64]
    operation: NDArray[np.uint64] | None = None
    attempt: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.ts_ns)


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something that is not a record at all, for the dead-letter topic.

    Attributes:
        offset: offset in the source partition, or line number in a file.
        reason: one of the "rejected.*" reasons of `schemas.ledger`.
        detail: what was found, for a person.
        raw: the first 1,024 bytes.
    """

    offset: int
    reason: str
    detail: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Decoded:
    """What became of one micro-batch of messages.

    Attributes:
        services: the accepted records, one entry a service.
        rejected: what goes to the dead-letter topic.
        ledger: (service, time_ns, reason) to count; time_ns is the record's own time where it
            has a credible one, else its arrival.
        unknown: names of columns that are no stage, covariate or dimension.
        deploys: changes of a service's version that the messages show.
    """

    services: tuple[Columns, ...]
    rejected: tuple[Rejected, ...]
    ledger: Mapping[tuple[str, int, str], int]
    unknown: frozenset[str]
    deploys: tuple[DeployRow, ...] = ()
