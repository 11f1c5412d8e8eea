"""A cohort: one tuple of values of a service's cohort dimensions."""

from __future__ import annotations

from typing import Final

Cohort = tuple[tuple[str, str], ...]

ALL: Final[Cohort] = ()
"""All cohorts together."""

OTHER: Final[Cohort] = (("(other)", "(other)"),)
"""The cohorts beyond `max_cohorts`; every answer that includes it says so."""

NONE: Final = "(none)"
"""The value of a dimension that a record does not carry."""


INSTANCE_WORDS: Final = frozenset(
    {
        *("instance", "replica", "pod", "host", "hostname", "node", "worker"),
        *("server", "machine", "container"),
    }
)
"""Words in the names of dimensions that tell apart the processes which serve requests."""


def is_instance(dimension: str) -> bool:
    """Return whether a dimension tells apart the processes which serve requests."""
    return bool(INSTANCE_WORDS & set(dimension.lower().split("_")))


def instance_of(cohort: Cohort) -> Cohort:
    """Return the part of a cohort that names the instance; empty when none does."""
    return tuple(pair for pair in cohort if is_instance(pair[0]))[:1]


def without_instance(cohort: Cohort) -> Cohort:
    """Return a cohort without what names the instance."""
    return tuple(pair for pair in cohort if not is_instance(pair[0]))


def cohort_text(cohort: Cohort) -> str:
    r"""Return the canonical text of a cohort, such as ``route=chat,region=eu``.

    A backslash, comma or equals sign inside a name or value is preceded by a backslash,
    so that distinct cohorts have distinct texts.
    """
    return ",".join(f"{_escape(name)}={_escape(value)}" for name, value in cohort)


def cohort_parse(text: str) -> Cohort:
    """Return the cohort that `cohort_text` wrote.

    Raises:
        ValueError: the text has a part without an equals sign.
    """
    if not text:
        return ALL
    parts: list[list[str]] = [[""]]
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            parts[-1][-1] += next(letters, "")
        elif letter == ",":
            parts.append([""])
        elif letter == "=":
            parts[-1].append("")
        else:
            parts[-1][-1] += letter
    if any(len(part) != 2 for part in parts):
        raise ValueError(f"not a cohort: {text!r}")
    return tuple((name, value) for name, value in parts)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
