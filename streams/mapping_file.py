"""The mapping file, which says what the fields of a log are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.audit_log.wanted import Wanted, parse_columns
from tailbudget.streams.log_time import NATIVE
from tailbudget.streams.sources import mapping
from tailbudget.streams.sources.expression import Expression

_MAX_BYTES: Final = 1_000_000
_FORM: Final = "tailbudget inspect FILE proposes a mapping; docs/sources.md#mapping says the rest"


class Column(BaseModel):
    """Where a column comes from: a path and its unit, or an expression."""

    model_config = ConfigDict(extra="forbid")

    path: str | None = Field(default=None, alias="from", min_length=1)
    unit: Literal["ns", "us", "ms", "s", "text"] = "ms"
    expr: str | None = None


class MappingFile(BaseModel):
    """What a mapping file may say."""

    model_config = ConfigDict(extra="forbid")

    columns: dict[str, Column]
    constants: dict[str, str | int | float | bool] = Field(default_factory=dict)
    keep: tuple[str, ...] = ()
    timezone: str | None = None
    covariates: tuple[str, ...] | None = None
    cohort_dims: tuple[str, ...] | None = None
    stages: tuple[str, ...] | None = None

    @field_validator("columns", mode="before")
    @classmethod
    def _paths(cls, value: Any) -> Any:
        """Read a text as a path."""
        if not isinstance(value, dict):
            return value
        return {k: {"from": v} if isinstance(v, str) else v for k, v in value.items()}


def load_mapping(path: Path) -> MappingFile:
    """Return what a file says.

    Raises:
        ConfigError: it cannot be read, or says what cannot be meant.
    """
    try:
        text = path.read_bytes()[: _MAX_BYTES + 1]
        said = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", remedy=_FORM) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no YAML: {error}", remedy=_FORM) from None
    if len(text) > _MAX_BYTES or not isinstance(said, dict):
        raise ConfigError(f"{path} is no mapping", remedy=_FORM)
    try:
        found = MappingFile.model_validate(said)
        mapped(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: {place}: {first['msg']}", remedy=_FORM) from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}", remedy=_FORM) from None
    return found


def with_columns(wanted: Wanted, columns: str | None) -> Wanted:
    """Return what is wanted, with the columns that a text or the mapping file of that name says.

    Raises:
        ConfigError: it says what cannot be meant, or the file cannot be read.
    """
    if columns is None:
        return wanted
    if columns.endswith((".yaml", ".yml")):
        return with_mapping(wanted, Path(columns))
    return replace(wanted, columns=parse_columns(columns))


def with_mapping(wanted: Wanted, path: Path) -> Wanted:
    """Return what is wanted, with what a mapping file says of what was not named.

    Raises:
        ConfigError: the file cannot be read, or says what cannot be meant.
    """
    said = load_mapping(path)
    return replace(
        wanted,
        mapping=mapped(said),
        format=wanted.format or NATIVE,
        timezone=wanted.timezone or said.timezone,
        stages=said.stages if wanted.stages is None else wanted.stages,
        covariates=said.covariates if wanted.covariates is None else wanted.covariates,
        cohort_dims=said.cohort_dims if wanted.cohort_dims is None else wanted.cohort_dims,
    )


def mapped(said: MappingFile) -> mapping.Mapped:
    """Return the mapping for the decoders.

    Raises:
        ValueError: a column has no source, an expression is none, or a unit stands at no duration.
    """
    fields: dict[str, mapping.Field] = {}
    expressions: dict[str, Expression] = {}
    for name, one in said.columns.items():
        if (one.path is None) == (one.expr is None):
            raise ValueError(f"columns.{name}: give from, or expr")
        if not name.endswith("_ms") and (one.unit != "ms" or one.expr is not None):
            raise ValueError(
                f"columns.{name}: only durations, of names in _ms, have a unit or expr"
            )
        if one.path is not None:
            fields[name] = mapping.Field(one.path, one.unit)
        else:
            expressions[name] = Expression.parse(str(one.expr))
    known = fields.keys() | said.constants.keys()
    for name, expression in expressions.items():
        strange = sorted(expression.names - known)
        if strange:
            raise ValueError(f"columns.{name}: {strange[0]!r} is no column with a from before it")
        known = known | {name}
    constants: dict[str, Any] = dict(said.constants)
    return mapping.Mapped(fields, constants, expressions, said.keep)
