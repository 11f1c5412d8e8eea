"""Documents of a text by kind and name, each checked against the specification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import yaml
from pydantic import ValidationError

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.openslo.alerting import (
    AlertCondition,
    AlertNotificationTarget,
    AlertPolicy,
)
from tailbudget.schemas.openslo.common import API_VERSION, Document, Metadata
from tailbudget.schemas.openslo.slo import Slo
from tailbudget.schemas.openslo.sources import DataSource, Service, Sli
from tailbudget.schemas.problems import Problem, config_error
from tailbudget.schemas.setting_paths import dotted
from tailbudget.streams.openslo import marks

KINDS: Final[Mapping[str, type[Document]]] = {
    "DataSource": DataSource,
    "Service": Service,
    "SLI": Sli,
    "SLO": Slo,
    "AlertCondition": AlertCondition,
    "AlertNotificationTarget": AlertNotificationTarget,
    "AlertPolicy": AlertPolicy,
}

D = TypeVar("D", bound=Document)


class UnsupportedError(Exception):
    """A field asks for what cannot be honoured.

    Attributes:
        path: the field, within its document.
        what: what is wrong with it.
        remedy: what to write instead.
    """

    def __init__(self, path: str, what: str, remedy: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path
        self.what = what
        self.remedy = remedy


@dataclass(slots=True)
class Documents:
    """All documents of a text.

    Attributes:
        source: where the text is from, for messages.
        by_kind: kind and name to document.
        problems: what is wrong so far.
    """

    source: str
    by_kind: dict[tuple[str, str], Document] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def of(self, kind: type[D]) -> list[D]:
        """Return the documents of a kind, in order."""
        return [one for one in self.by_kind.values() if isinstance(one, kind)]

    def named(self, kind: type[D], name: str, path: str) -> D:
        """Return the document that a field refers to.

        Raises:
            UnsupportedError: there is none.
        """
        label = next(key for key, model in KINDS.items() if model is kind)
        found = self.by_kind.get((label, name))
        if not isinstance(found, kind):
            remedy = f"add the {label}, or write it out in place"
            raise UnsupportedError(path, f"names {label} {name!r}, which is not here", remedy)
        return found

    def refuse(self, document: Document, error: UnsupportedError) -> None:
        """Note what cannot be honoured."""
        where = f"{document.kind}/{document.metadata.name}: {error.path}"
        self.problems.append(Problem(where, error.what, error.remedy))

    def require_none_wrong(self) -> None:
        """Raise all problems as one.

        Raises:
            ConfigError: there is one.
        """
        if self.problems:
            raise config_error(self.source, self.problems)


def parse(text: str, source: str) -> Documents:
    """Return the documents of a text, with all that is wrong with them by themselves.

    Raises:
        ConfigError: the text is no YAML.
    """
    documents = Documents(source)
    try:
        values = [value for value in yaml.safe_load_all(text) if value is not None]
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is no YAML: {error}", remedy="correct it there") from error
    for place, value in enumerate(values):
        _add(documents, value, place)
    if not values:
        documents.problems.append(Problem("(top level)", "holds no document", "add an SLO"))
    return documents


def _add(documents: Documents, value: Any, place: int) -> None:
    label = _label(value, place)
    kind = KINDS.get(value.get("kind", "")) if isinstance(value, Mapping) else None
    if kind is None:
        what = "is no mapping" if not isinstance(value, Mapping) else "is no kind of OpenSLO v1"
        path = label if not isinstance(value, Mapping) else f"{label}: kind"
        documents.problems.append(Problem(path, what, f"kinds are {', '.join(KINDS)}"))
        return
    try:
        document = kind.model_validate(value)
    except ValidationError as error:
        documents.problems += _problems(error, label)
        return
    documents.problems += _unknown_annotations(document.metadata, label)
    key = (document.kind, document.metadata.name)
    if key in documents.by_kind:
        documents.problems.append(
            Problem(f"{label}: metadata.name", "is there twice", "rename one of the two")
        )
    documents.by_kind[key] = document


def _label(value: Any, place: int) -> str:
    if isinstance(value, Mapping):
        metadata = value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        if name and value.get("kind"):
            return f"{value['kind']}/{name}"
    return f"document {place + 1}"


def _problems(error: ValidationError, label: str) -> list[Problem]:
    return [
        Problem(
            f"{label}: {dotted(tuple(item['loc']))}",
            "no such key" if item["type"] == "extra_forbidden" else item["msg"],
            str(item.get("ctx", {}).get("remedy") or f"see the specification of {API_VERSION}"),
        )
        for item in error.errors(include_url=False, include_input=False)
    ]


def _unknown_annotations(metadata: Metadata, label: str) -> list[Problem]:
    ours = [key for key in metadata.annotations if key.startswith(marks.PREFIX)]
    return [
        Problem(
            f"{label}: metadata.annotations.{key}",
            "is no annotation of ours",
            f"those are {', '.join(sorted(marks.KNOWN))}",
        )
        for key in ours
        if key not in marks.KNOWN
    ]
