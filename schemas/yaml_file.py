"""A YAML file with the place of each value, so that an error can name its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tailbudget.schemas.errors import ConfigError

Key = tuple[str | int, ...]
"""Path of a value: keys of mappings and indices of lists."""


# The one in C is several times as fast, where it was built.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says, and where it says so.

    Attributes:
        values: the top-level mapping.
        lines: path of a value to its line, counted from 1.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[Key, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file is for, to say of it what is wrong.

    Attributes:
        name: in a sentence.
        missing: the remedy when there is no such file.
        wrong: the remedy when it cannot be understood.
    """

    name: str
    missing: str
    wrong: str


SETTINGS: Final = Kind(
    "settings file",
    "give --config PATH, or start from tailbudget.example.yaml",
    "correct it there; tailbudget.example.yaml shows every key",
)


def read_yaml(path: Path, kind: Kind = SETTINGS) -> Document:
    """Return the contents of a file; an empty file says nothing and is fine.

    Raises:
        ConfigError: the file cannot be read, is no YAML, repeats a key, or is no mapping.
    """
    text = _read(path, kind)
    try:
        root = yaml.compose(text, Loader=_LOADER)
        values = yaml.load(text, Loader=_LOADER)  # noqa: S506 (both loaders are the safe one)
    except yaml.MarkedYAMLError as error:
        raise _syntax(path, error, kind) from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{path} is no YAML: {error}", remedy=kind.wrong) from error
    if root is None:
        return Document()
    index = _Index(path)
    index.visit(root, ())
    if not isinstance(values, dict):
        raise ConfigError(
            f"{path}, line {index.lines[()]}: this is no mapping of keys",
            remedy=kind.wrong,
        )
    return Document(values, index.lines)


def _read(path: Path, kind: Kind) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"{kind.name} {path} does not exist", remedy=kind.missing) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no UTF-8 text", remedy="save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(
            f"{kind.name} {path} cannot be read: {error.strerror}",
            remedy="check that it is a file and that its rights let us read it",
        ) from error


def _syntax(path: Path, error: yaml.MarkedYAMLError, kind: Kind) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    what = " ".join(part for part in (error.context, error.problem) if part)
    return ConfigError(f"{path}{place}: no valid YAML: {what}", remedy=kind.wrong)


@dataclass(slots=True)
class _Index:
    """Fills `lines` while it walks the nodes of one file."""

    path: Path
    lines: dict[Key, int] = field(default_factory=dict)
    open_nodes: list[yaml.Node] = field(default_factory=list)

    def visit(self, node: yaml.Node, key: Key) -> None:
        self.lines.setdefault(key, node.start_mark.line + 1)
        if any(node is outer for outer in self.open_nodes):
            raise self._error(node, "an alias holds itself", "write the value out")
        self.open_nodes.append(node)
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.visit(item, (*key, index))
        elif isinstance(node, yaml.MappingNode):
            self._mapping(node, key)
        self.open_nodes.pop()

    def _mapping(self, node: yaml.MappingNode, key: Key) -> None:
        seen: dict[str, int] = {}
        for name, item in node.value:
            inner = (*key, str(name.value))
            line = name.start_mark.line + 1
            if name.value in seen and name.tag != "tag:yaml.org,2002:merge":
                what = f"{'.'.join(map(str, inner))} is given twice"
                raise self._error(
                    name, f"{what} (first on line {seen[name.value]})", "remove one of the two"
                )
            seen[name.value] = self.lines[inner] = line
            self.visit(item, inner)

    def _error(self, node: yaml.Node, what: str, remedy: str) -> ConfigError:
        mark = node.start_mark
        place = f"{self.path}, line {mark.line + 1}, column {mark.column + 1}"
        return ConfigError(f"{place}: {what}", remedy=remedy)
