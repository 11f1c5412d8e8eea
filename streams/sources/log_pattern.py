"""A log format as its proxy is configured with, compiled to read the lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tailbudget.schemas.errors import ConfigError

NGINX: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
ENVOY: Final = re.compile(r"%(\w+(?:\([^)]*\))?(?::\d+)?)%")

_QUOTED: Final = r'((?:[^"\\]|\\.)*+)'
_BRACKETED: Final = r"([^\]]*+)"
_ZONED: Final = r"(\S++ [+-]\d{4})"
_LONGEST: Final = 4_000


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled log format.

    Attributes:
        names: the variables, in their order.
        regex: of a line, a group a variable.
    """

    names: tuple[str, ...]
    regex: re.Pattern[str]

    def match(self, line: str) -> Mapping[str, str] | None:
        """Return the values of a line by variable; None where it is not of the format."""
        found = self.regex.fullmatch(line)
        return None if found is None else dict(zip(self.names, found.groups(), strict=True))


@lru_cache(maxsize=256)
def compiled(text: str, variable: re.Pattern[str]) -> Pattern:
    """Return a log format, compiled.

    A variable in quotes reaches to the closing one, one in brackets likewise; of the others those
    of an upstream may be lists, and no other holds a space, or what stands behind it. So there is
    one way to read a line, and it takes no longer than the line is long.

    Args:
        text: the format.
        variable: what a variable looks like in it; its first group that matches is the name.

    Raises:
        ConfigError: it names no variable, or is too long.
    """
    names: list[str] = []
    regex: list[str] = []
    end = 0
    for found in variable.finditer(text):
        regex.append(_literal(text[end : found.start()]))
        name = next(group for group in found.groups() if group)
        names.append(name)
        regex.append(_group(name, text[found.start() - 1 : found.start()], text[found.end() :][:1]))
        end = found.end()
    if not names or len(text) > _LONGEST:
        raise ConfigError(
            f"{text[:80]!r} is no log format",
            remedy="give it as the proxy has it, such as '[$time_local] $status $request_time'",
        )
    regex.append(_literal(text[end:]))
    return Pattern(tuple(names), re.compile("".join(regex)))


def _literal(text: str) -> str:
    return re.sub(r"(\\ |\s)+", r"\\s+", re.escape(text.rstrip("\n")))


def _group(name: str, before: str, after: str) -> str:
    if before == '"' == after:
        return _QUOTED
    if before == "[" and after == "]":
        return _BRACKETED
    if name == "time_local":
        return _ZONED
    end = "" if after.isspace() else re.escape(after)
    if name.startswith("upstream_"):
        return rf"((?:[^\s,{end}]++(?:, | : ))*+[^\s,{end}]*+)"
    return rf"([^\s{end}]*+)"
