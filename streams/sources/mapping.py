"""A mapping: which of a source's fields, at any depth, are which columns of a record."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from tailbudget.streams.sources import repair
from tailbudget.streams.sources.expression import Expression
from tailbudget.streams.sources.numbers import UNITS
from tailbudget.streams.sources.written_durations import written_ms

TEXT: Final = "text"
"""Unit of durations that are printed with their own, such as "35.1ms"."""

ALL_UNITS: Final = (*UNITS, TEXT)
_DEEPEST: Final = 20


@dataclass(frozen=True, slots=True)
class Field:
    """Where a column comes from.

    Attributes:
        path: name of the field, those above it before it, parted by dots.
        unit: of a duration.
    """

    path: str
    unit: str = "ms"


@dataclass(frozen=True, slots=True)
class Mapped:
    """How records are made of what a source has.

    Attributes:
        fields: by our column.
        constants: values that every record has.
        expressions: durations that are computed of others, by our column.
        keep: fields of the source that are kept under their own names.
    """

    fields: Mapping[str, Field]
    constants: Mapping[str, Any] = field(default_factory=dict)
    expressions: Mapping[str, Expression] = field(default_factory=dict)
    keep: tuple[str, ...] = ()

    def record(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """Return the native record of one of the source; what is missing there is missing here."""
        record = dict(self.constants)
        for name in self.keep:
            record[name] = plain(at(source, name))
        for name, one in self.fields.items():
            value = plain(at(source, one.path))
            if value is not None:
                record[name] = _milliseconds(value, one.unit) if name.endswith("_ms") else value
        for name, expression in self.expressions.items():
            known = {key: _number(record.get(key)) for key in expression.names}
            record[name] = expression.value(known)
        return {name: value for name, value in record.items() if value is not None}


def at(source: Any, path: str) -> Any:
    """Return the field at a path; a name that has dots itself comes first, a number is a place."""
    for _ in range(_DEEPEST):
        if isinstance(source, Mapping) and path in source:
            return source[path]
        name, dot, path = path.partition(".")
        if isinstance(source, Mapping):
            source = source.get(name)
        elif isinstance(source, list) and name.isdecimal() and int(name) < len(source):
            source = source[int(name)]
        else:
            return None
        if not dot:
            return source
    return None


def flat(source: Mapping[str, Any], above: str = "", depth: int = 0) -> Iterable[tuple[str, Any]]:
    """Yield the paths and values of all fields that hold no others."""
    for name, value in source.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping) and value and depth < _DEEPEST:
            yield from flat(value, f"{path}.", depth + 1)
        else:
            yield path, value


def plain(value: Any) -> Any:
    """Return a cell as JSON would have it: times with their zone, durations in milliseconds."""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return value.total_seconds() * 1e3
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value


def _milliseconds(value: Any, unit: str) -> Any:
    """Return a duration in milliseconds; what is no number stays, for the judge of the rows."""
    if unit == TEXT:
        found = written_ms(value) if isinstance(value, str) else None
        return value if found is None else found
    number = _number(value)
    return value if number is None or unit == "ms" else number * UNITS[unit]


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    found = repair.as_number(value)
    return None if found is None or abs(found) >= repair.HUGE else float(found)
