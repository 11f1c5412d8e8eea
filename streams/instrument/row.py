"""From a finished request to one line of JSON: the record of `docs/record.md`."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from tailbudget.streams.instrument.sink import Finished

RESERVED_STAGES: Final = frozenset(
    {"total", "failed", "unattributed", "timeout", "ttft", "itl", "tpot"}
)
"""Names whose `<name>_ms` column means something else in a record, or that readers give."""

_OURS: Final = frozenset({"timestamp", "total_ms", "status"})
_SUFFIX: Final = "_ms"


class Encoded(NamedTuple):
    """A record as text.

    Attributes:
        line: the JSON, without a newline; None where the request's id itself has no JSON form.
        lost: columns that were left out, for want of a JSON form or for having a reserved name.
    """

    line: bytes | None
    lost: int


def row_of(record: Finished, service: str | None) -> tuple[dict[str, Any], int]:
    """Return the columns of a record, and how many were left out for their reserved names."""
    row: dict[str, Any] = {
        "request_id": record.request_id,
        "timestamp": record.started_ns,
        "status": record.status,
        "total_ms": record.spans.total_ms,
    }
    if service is not None:
        row["service"] = service
    lost = 0
    for column, value in tuple(record.columns.items()):
        if column in _OURS:
            lost += 1
        elif value is not None:
            row[column] = value
    for stage, spent_ms in record.spans.stage_ms().items():
        if stage in RESERVED_STAGES:
            lost += 1
        else:
            row[stage + _SUFFIX] = spent_ms
    if record.weight != 1:
        own = record.columns.get("weight")
        row["weight"] = record.weight * (own if isinstance(own, int | float) else 1)
    return row, lost


def encode(record: Finished, service: str | None) -> Encoded:
    """Return a record as text; what JSON does not know is written as its `str`."""
    row, lost = row_of(record, service)
    try:
        return Encoded(orjson.dumps(row, default=str), lost)
    except orjson.JSONEncodeError:
        kept = {column: value for column, value in row.items() if _has_json(column, value)}
        line = orjson.dumps(kept, default=str) if "request_id" in kept else None
        return Encoded(line, lost + len(row) - len(kept))


def _has_json(column: str, value: object) -> bool:
    """Say whether a cell can be written: text with half a surrogate cannot, nor can 2**64."""
    try:
        orjson.dumps({column: value}, default=str)
    except orjson.JSONEncodeError:
        return False
    return True
