"""What is wrong with settings, told so that a person can mend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticUndefined

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.setting_paths import Spot, dotted, locate
from tailbudget.schemas.yaml_file import Key


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was given.

    Attributes:
        place: "line 12", or the name of an environment variable.
        shown: what to show instead of the value, where it holds a `${NAME}`.
    """

    place: str
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        path: the setting, such as ``services.chat.slo.p99_ms``.
        what: what is wrong with it, with the value that was given.
        remedy: what to write instead.
        place: where it was given; empty when nowhere.
    """

    path: str
    what: str
    remedy: str
    place: str = ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.path}{place}: {self.what}\n    remedy: {self.remedy}"


def config_error(source: str, problems: Sequence[Problem]) -> ConfigError:
    """Return the one error that tells all problems of a source."""
    if len(problems) == 1:
        only = problems[0]
        place = f" ({only.place})" if only.place else ""
        return ConfigError(f"{source}: {only.path}{place}: {only.what}", remedy=only.remedy)
    lines = "".join(f"\n  {problem}" for problem in problems)
    return ConfigError(
        f"{source} has {len(problems)} problems{lines}",
        remedy="mend them all, then run `tailbudget check`",
    )


def describe(
    error: ValidationError,
    model: type[BaseModel],
    values: Mapping[str, Any],
    origins: Mapping[Key, Origin],
) -> list[Problem]:
    """Return the problems that a failed validation found, in the order of the settings."""
    items = error.errors(include_url=False)
    causes = {item["loc"][:-depth] for item in items for depth in range(1, len(item["loc"]))}
    # A list whose entries were all refused is also "too short": that says nothing new.
    items = [item for item in items if item["type"] != "too_short" or item["loc"] not in causes]
    return [_problem(item, model, values, origins) for item in items]


def _problem(
    item: ErrorDetails,
    model: type[BaseModel],
    values: Mapping[str, Any],
    origins: Mapping[Key, Origin],
) -> Problem:
    key: Key = tuple(part for part in item["loc"] if part != "[key]")
    spot = locate(model, key)
    origin = next((origins[key[:n]] for n in range(len(key), 0, -1) if key[:n] in origins), None)
    place = origin.place if origin else ""
    if item["type"] == "extra_forbidden":
        return Problem(dotted(key), "no such key", spot.suggestion(), place)
    shown = _shown(spot, _dig(values, key), origins.get(key))
    return Problem(dotted(key), f"{shown}{_what(item)}", _remedy(item, spot), place)


def _dig(values: Any, key: Key) -> Any:
    for part in key:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return PydanticUndefined
    return values


def _shown(spot: Spot, value: Any, origin: Origin | None) -> str:
    if spot.secret or value is PydanticUndefined or isinstance(value, dict | list):
        return ""
    if origin is not None and origin.shown is not None:
        return f"{origin.shown} "
    return f"{value!r} " if isinstance(value, str) else f"{value} "


_BOUNDS: Final = {
    "greater_than": ("gt", "is not above"),
    "greater_than_equal": ("ge", "is below"),
    "less_than": ("lt", "is not below"),
    "less_than_equal": ("le", "is above"),
}

_WHAT: Final = {
    "literal_error": "is not one of the choices",
    "too_short": "has too few entries",
    "missing": "is missing",
    "int_parsing": "is no whole number",
    "int_type": "is no whole number",
    "int_from_float": "is no whole number",
    "float_parsing": "is no number",
    "float_type": "is no number",
    "finite_number": "is no finite number",
    "bool_parsing": "is neither true nor false",
    "bool_type": "is neither true nor false",
    "string_type": "is no text",
    "string_pattern_mismatch": "is not of the right form",
    "string_too_short": "is empty",
    "tuple_type": "is no list",
    "dict_type": "is no mapping of keys",
    "model_type": "is no mapping of keys",
    "path_type": "is no path",
}


def _what(item: ErrorDetails) -> str:
    kind = item["type"]
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"{words} {item.get('ctx', {})[name]:g}"
    return _WHAT.get(kind, item["msg"])


def _remedy(item: ErrorDetails, spot: Spot) -> str:
    context = item.get("ctx", {})
    if "remedy" in context:
        return str(context["remedy"])
    parts = [f"use {context['expected']}"] if item["type"] == "literal_error" else []
    if spot.field is not None and spot.field.description:
        parts.append(spot.field.description)
    default = spot.field.default if spot.field is not None else PydanticUndefined
    if isinstance(default, int | float | str) and not spot.secret:
        parts.append(f"default {default}")
    return "; ".join(parts) or "see tailbudget.example.yaml"
