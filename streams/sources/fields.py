"""Which columns a record may have, and of which type each is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tailbudget.schemas.records import RESERVED_STAGES, TOKEN_TIMES
from tailbudget.streams.sources.base import Rules, ServiceRules

ID: Final = "request_id"
TIME: Final = "timestamp"
TOTAL: Final = "total_ms"
STATUS: Final = "status"
SERVICE: Final = "service"
LIMIT: Final = "timeout_ms"
SCHEDULED: Final = "scheduled_ts"
WEIGHT: Final = "weight"
OPERATION: Final = "operation_id"
ATTEMPT: Final = "attempt"
TOKENS: Final = "output_tokens"

REQUIRED: Final = (ID, TIME, TOTAL, STATUS, SERVICE)
"""Columns that are read from every batch; the others as they turn up."""

FIXED: Final = frozenset({*REQUIRED, LIMIT, WEIGHT, SCHEDULED, OPERATION, ATTEMPT, TOKENS})
"""Columns that are known whatever a service's rules say."""

_NUMBERS: Final = frozenset({TOTAL, LIMIT, WEIGHT, ATTEMPT})
_SUFFIX: Final = "_ms"


def stage_of(column: str) -> str | None:
    """Return the stage that a column times, or None where its name is not that of a stage."""
    stage = column.removesuffix(_SUFFIX)
    if stage in {column, ""} or stage in RESERVED_STAGES or column in FIXED:
        return None
    return stage


@dataclass(frozen=True, slots=True)
class Layout:
    """Which of a batch's columns mean what to one service.

    Attributes:
        stages: (name, column) pairs, sorted by name.
        covariates: columns, sorted.
        dims: cohort dimensions in the service's order, whether present or not.
        unknown: columns that mean nothing to the service, sorted.
    """

    stages: tuple[tuple[str, str], ...]
    covariates: tuple[str, ...]
    dims: tuple[str, ...]
    unknown: tuple[str, ...]


def layout(columns: frozenset[str], rules: ServiceRules) -> Layout:
    """Assign the columns that a batch carries to their meanings for one service."""
    covariates = columns & set(rules.covariates)
    dims = columns & set(rules.cohort_dims)
    free = columns - covariates - dims
    stages = {column: stage_of(column) for column in free}
    pairs = sorted((stage, column) for column, stage in stages.items() if _wanted(stage, rules))
    unknown = free - FIXED - {column for _, column in pairs}
    return Layout(
        stages=tuple((stage or "", column) for stage, column in pairs),
        covariates=tuple(sorted(covariates)),
        dims=rules.cohort_dims,
        unknown=tuple(sorted(unknown)),
    )


def is_read_as_number(column: str, rules: Rules) -> bool:
    """Return whether a column of the source is read as a number, whatever of ours it stands for."""
    ours = rules.ours(column)
    return bool(ours) and all(is_number(name, rules) for name in ours)


def is_number(column: str, rules: Rules) -> bool:
    """Return whether a column of ours is a number for all services; else it is text."""
    every = rules.all()
    if column in _NUMBERS:
        return True
    if any(column in one.cohort_dims for one in every):
        return False
    if column == TOKENS:
        return True
    if any(column in one.covariates for one in every):
        return True
    return any(_wanted(stage_of(column), one) for one in every)


def _wanted(stage: str | None, rules: ServiceRules) -> bool:
    if stage is None:
        return False
    if stage in TOKEN_TIMES:
        return True
    return rules.stages is None or stage in rules.stages or stage + _SUFFIX in rules.stages
