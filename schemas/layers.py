"""Settings before they are checked: the file, with the environment laid over it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from tailbudget.schemas.problems import Origin, Problem
from tailbudget.schemas.setting_paths import dotted, locate
from tailbudget.schemas.yaml_file import Document, Key

PREFIX: Final = "TAILBUDGET_"
RESERVED: Final = ("TAILBUDGET_CONFIG", "TAILBUDGET_TEST_")
"""Variables that are no settings: the path of the file, and what tests are told."""

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Layers:
    """The values of a document, changed step by step.

    Attributes:
        values: nested mappings and lists, not yet checked.
        origins: path of a value to where it was given.
        problems: what went wrong so far.
    """

    def __init__(self, document: Document, model: type[BaseModel]) -> None:
        self.values: dict[str, Any] = {str(k): _copy(v) for k, v in document.values.items()}
        self.origins: dict[Key, Origin] = {
            key: Origin(f"line {line}") for key, line in document.lines.items()
        }
        self.problems: list[Problem] = []
        self._model = model

    def override(self, environ: Mapping[str, str]) -> None:
        """Lay `TAILBUDGET_A__B=value` over the key a.b."""
        for name in sorted(environ):
            if name.startswith(PREFIX) and not name.startswith(RESERVED):
                self._override_one(name, environ[name])

    def _override_one(self, name: str, text: str) -> None:
        parts = name.removeprefix(PREFIX).lower().split("__")
        key: Key = tuple(int(part) if part.isdecimal() else part for part in parts)
        spot = locate(self._model, key)
        origin = Origin(name)
        if not spot.known:
            self.problems.append(
                Problem(name, "names no setting", spot.suggestion(PREFIX, separator="__"))
            )
            return
        value: Any = text
        if spot.structured and text.lstrip().startswith(("[", "{")):
            try:
                value = json.loads(text)
            except json.JSONDecodeError as error:
                self.problems.append(Problem(name, f"is no JSON: {error}", "correct the JSON"))
                return
        if self._put(key, value):
            self.origins[key] = origin
        else:
            remedy = f"give {dotted(key[:-1])} as a whole, in the file or as JSON"
            self.problems.append(Problem(name, f"there is no place for {dotted(key)}", remedy))

    def _put(self, key: Key, value: Any) -> bool:
        """Set a value, making the mappings and the next list entry on the way to it."""
        node: Any = self.values
        for part, after in zip(key, (*key[1:], None), strict=True):
            if not _has_room(node, part):
                return False
            if after is None:
                node[part] = value
                break
            if not isinstance(node, list):
                node.setdefault(part, None)
            if node[part] is None:
                node[part] = [] if isinstance(after, int) else {}
            node = node[part]
        return True

    def interpolate(self, environ: Mapping[str, str]) -> None:
        """Replace `${NAME}` in every text; `$${` stays a plain `${`."""
        for name in list(self.values):
            self.values[name] = self._expand(self.values[name], (name,), environ)

    def _expand(self, value: Any, key: Key, environ: Mapping[str, str]) -> Any:
        if isinstance(value, dict):
            return {k: self._expand(v, (*key, str(k)), environ) for k, v in value.items()}
        if isinstance(value, list):
            return [self._expand(v, (*key, i), environ) for i, v in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        place = self.origins.get(key, Origin("")).place
        self.origins[key] = Origin(place, shown=value)
        return "${".join(self._fill(part, key, environ) for part in value.split("$${"))

    def _fill(self, text: str, key: Key, environ: Mapping[str, str]) -> str:
        for name in _REFERENCE.findall(text):
            if name not in environ:
                problem = f"environment variable {name} is not set"
                self.problems.append(
                    Problem(dotted(key), problem, f"export {name}=…", self.origins[key].place)
                )
        return _REFERENCE.sub(lambda match: environ.get(match[1], match[0]), text)


def _has_room(node: Any, part: str | int) -> bool:
    """Return whether a container can hold the key; a list grows by one entry at most."""
    if isinstance(node, list) and isinstance(part, int) and part <= len(node):
        node += [None] * (part == len(node))
        return True
    return isinstance(node, dict)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _copy(part) for key, part in value.items()}
    return [_copy(part) for part in value] if isinstance(value, list) else value
