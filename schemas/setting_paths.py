"""Where a path of keys leads in the settings."""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from tailbudget.schemas.yaml_file import Key


@dataclass(frozen=True, slots=True)
class Spot:
    """What the settings know about a path.

    Attributes:
        path: the path up to and including the first unknown key.
        field: the field at the path, when there is one.
        known: whether the path leads to a setting.
        structured: whether the setting is a list or a mapping.
        siblings: the keys that exist at the last place that is known.
    """

    path: Key
    field: FieldInfo | None
    known: bool
    structured: bool
    siblings: tuple[str, ...]

    @property
    def secret(self) -> bool:
        """Whether the value must not be shown."""
        return self.field is not None and SecretStr in _alternatives(self.field.annotation)

    def suggestion(self, prefix: str = "", separator: str = ".") -> str:
        """Return the nearest key that exists, or all of them."""
        name = str(self.path[-1]) if self.path else ""
        near = get_close_matches(name, self.siblings, n=1)
        if not near:
            return f"keys here: {', '.join(self.siblings)}"
        if separator == ".":
            return f"did you mean {near[0]!r}?"
        whole = separator.join(map(str, (*self.path[:-1], near[0]))).upper()
        return f"did you mean {prefix}{whole}?"


def dotted(key: Key) -> str:
    """Return a path as text, such as ``kafka.requests[0].topic``."""
    text = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part or repr(part)}" for part in key
    )
    return text.removeprefix(".") or "(top level)"


def locate(model: type[BaseModel], key: Key) -> Spot:
    """Return what is known about a path below a settings model."""
    here: Any = model
    field: FieldInfo | None = None
    siblings: tuple[str, ...] = ()
    for depth, part in enumerate(key):
        options = _alternatives(here)
        group = next((o for o in options if _is_model(o)), None)
        items = next((o for o in options if typing.get_origin(o) in (dict, tuple)), None)
        if group is not None:
            siblings = tuple(group.model_fields)
            field = group.model_fields.get(str(part))
            if field is None:
                return Spot(key[: depth + 1], None, False, False, siblings)
            here = _annotation(field)
        elif items is not None:
            is_list = typing.get_origin(items) is tuple
            if is_list and not isinstance(part, int):
                return Spot(key[: depth + 1], None, False, False, ())
            here = typing.get_args(items)[0 if is_list else 1]
        else:
            return Spot(key[: depth + 1], None, False, False, ())
    options = _alternatives(here)
    nested = any(_is_model(o) or typing.get_origin(o) in (dict, tuple) for o in options)
    return Spot(key, field, True, nested, siblings)


def _annotation(field: FieldInfo) -> Any:
    metadata = field.metadata
    return typing.Annotated[(field.annotation, *metadata)] if metadata else field.annotation


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the types that an annotation allows, each without its constraints."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        inner, *metadata = typing.get_args(annotation)
        through = [m.fields for m in metadata if hasattr(m, "fields")]
        return tuple(through) or _alternatives(inner)
    if origin in (typing.Union, types.UnionType):
        return tuple(o for arg in typing.get_args(annotation) for o in _alternatives(arg))
    return (annotation,)
