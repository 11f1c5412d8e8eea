"""The catalogue of fixes: data, which users override and extend by a file of their own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from tailbudget.schemas.problems import Origin, Problem, config_error, describe
from tailbudget.schemas.proposals import CauseName
from tailbudget.schemas.settings_base import Group, refuse
from tailbudget.schemas.yaml_file import Document, read_yaml

Sign = Literal["covariate", "cohort", "instance", "deploys", "scale_ups", "load_varies"]
"""What must have been measured: docs/fixes.md explains each."""

EffectKind = Literal[
    "cap_covariate", "route_above", "route_cohort", "round_trips", "hit_ratio", "scale_stage",
    "cap_stage", "level_stage", "hedge", "parallel", "drop_cold", "lower_load", "none",
]  # fmt: skip

_PARAMETERS: Final = ("at", "per_call", "to", "factor", "percentile", "beside")
_ALLOWED: Final[Mapping[str, str]] = {
    "cap_covariate": "at",
    "route_above": "at",
    "round_trips": "per_call",
    "hit_ratio": "to",
    "scale_stage": "factor",
    "lower_load": "factor",
    "cap_stage": "percentile",
    "hedge": "percentile",
    "parallel": "beside",
}
_REQUIRED: Final = frozenset({"round_trips", "hit_ratio", "cap_stage", "hedge", "lower_load"})

_Patterns = tuple[Annotated[str, Field(min_length=1, max_length=100)], ...]
_Key = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]


class Conditions(Group):
    """When a fix comes into question; everything given must hold."""

    stages: _Patterns = Field(
        default=(), description="patterns such as *fetch*, one of which the stage matches"
    )
    covariates: _Patterns = Field(
        default=(), description="patterns such as *batch*, one of which the covariate matches"
    )
    signs: tuple[Sign, ...] = Field(default=(), description="what must have been measured")


class Effect(Group):
    """What a fix is taken to change, for the replay of measured requests."""

    kind: EffectKind = Field(description="which change is replayed; none estimates nothing")
    at: float | None = Field(
        default=None, gt=0, description="largest covariate; null takes the p95 of fast requests"
    )
    per_call: float | None = Field(default=None, gt=1, description="units that one call fetches")
    to: float | None = Field(default=None, gt=0, le=1, description="share of lookups that hit")
    factor: float | None = Field(
        default=None, gt=0, description="of the stage's time or of the load; null estimates nothing"
    )
    percentile: float | None = Field(
        default=None, ge=50, lt=100, description="of the stage, at which the fix steps in"
    )
    beside: _Patterns = Field(default=(), description="patterns of stages to run at the same time")
    assumption: str = Field(
        default="", max_length=200, description="what the replay takes for granted, and why"
    )

    @model_validator(mode="after")
    def _parameters(self) -> Self:
        allowed = _ALLOWED.get(self.kind)
        given = [name for name in _PARAMETERS if getattr(self, name) not in (None, ())]
        if other := [name for name in given if name != allowed]:
            remedy = f"give {allowed}" if allowed else "leave it out"
            raise refuse("parameter", f"kind {self.kind} takes no {other[0]}", remedy)
        if self.kind in _REQUIRED and not given:
            raise refuse("parameter", f"kind {self.kind} lacks {allowed}", f"add {allowed}")
        if self.kind == "scale_stage" and (self.factor or 0) > 1:
            raise refuse("factor", "a factor above 1 makes the stage slower", "use 0 to 1")
        if self.kind == "lower_load" and (self.factor or 2) <= 1:
            raise refuse("factor", "a factor of 1 or less adds no capacity", "use more than 1")
        return self


class Fix(Group):
    """One thing that can be done about a cause."""

    fix: str = Field(min_length=1, max_length=160, description="what to do, in the imperative")
    causes: tuple[CauseName, ...] = Field(min_length=1, description="the causes that it treats")
    applies_when: Conditions = Field(
        default=Conditions(),
        description="when it comes into question; everything given must hold",
    )
    effect: Effect = Field(default=Effect(kind="none"), description="what it is taken to change")
    hours: float = Field(gt=0, le=10_000, description="engineering hours; put in your own")
    quality_risk: Literal["none", "low", "medium", "high"] = Field(
        description="risk to the quality of answers"
    )
    reversible: bool = Field(description="whether it can be switched off again at once")
    horizon: Literal["short", "long"] = Field(description="short is a mitigation, long mends")
    verify: str = Field(min_length=1, max_length=200, description="how to see that it worked")

    @field_validator("causes")
    @classmethod
    def _named(cls, value: tuple[CauseName, ...]) -> tuple[CauseName, ...]:
        if CauseName.UNKNOWN in value:
            raise refuse("unknown", "treats an unknown cause", "name the cause that it treats")
        return value


class Catalogue(Group):
    """Fixes by key."""

    fixes: dict[_Key, Fix] = Field(default={}, description="fixes by key")


def load_catalogue(path: Path | None = None) -> Catalogue:
    """Return the built-in fixes, with those of a file on top.

    In the file a key of ours changes only the fields that are given (of `effect` too, unless its
    kind changes), a new key adds a fix, and a key set to null removes one.

    Raises:
        ConfigError: the file is missing, no YAML, or any fix is wrong; all that is wrong is in
            the one message, each with its path, what was given, and the remedy.
    """
    built_in = _built_in()
    if path is None:
        return Catalogue.model_validate(built_in)
    document = read_yaml(path)
    problems = _misplaced(document)
    values = {"fixes": _over(built_in["fixes"], document.values.get("fixes"))}
    try:
        catalogue = Catalogue.model_validate(values)
    except ValidationError as error:
        origins = {key: Origin(f"line {line}") for key, line in document.lines.items()}
        problems += describe(error, Catalogue, values, origins)
    if problems:
        raise config_error(str(path), problems)
    return catalogue


@cache
def _built_in() -> Mapping[str, Any]:
    with as_file(files("tailbudget.schemas").joinpath("catalogue.yaml")) as path:
        return read_yaml(path).values


def _misplaced(document: Document) -> list[Problem]:
    return [
        Problem(str(key), "no such key", "put fixes under `fixes:`", _place(document, str(key)))
        for key in document.values
        if key != "fixes"
    ]


def _place(document: Document, key: str) -> str:
    return f"line {document.lines[key,]}" if (key,) in document.lines else ""


def _over(built_in: Mapping[str, Any], own: Any) -> Any:
    """Return the fixes with a user's on top; what is no mapping is left for validation."""
    if own is None:
        return built_in
    if not isinstance(own, Mapping):
        return own
    merged = {**built_in, **{key: _one(built_in.get(key), fix) for key, fix in own.items()}}
    return {key: fix for key, fix in merged.items() if fix is not None}


def _one(ours: Any, own: Any) -> Any:
    if not isinstance(ours, Mapping) or not isinstance(own, Mapping):
        return own
    effect, before = own.get("effect"), ours.get("effect", {})
    if isinstance(effect, Mapping) and effect.get("kind") in (None, before.get("kind")):
        return {**ours, **own, "effect": {**before, **effect}}
    return {**ours, **own}
