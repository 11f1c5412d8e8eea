"""Whether a text is one statement that only reads.

The connection is read-only too. This covers what ClickHouse's own mode leaves open: several
statements in one text, INTO OUTFILE (which the embedded engine writes on our disk), KILL, and the
embedded engine's function that reads variables of the process.
"""

from __future__ import annotations

import re
from typing import Final

from tailbudget.schemas.errors import ConfigError

READS: Final = frozenset({"select", "with", "show", "describe", "desc", "explain", "exists"})
"""First words of statements that only read."""

_TOKEN: Final = re.compile(
    r"""
    (?P<gap>\s+ | --[^\n]* | \#!?[^\n]* | /\*(?:[^*]|\*(?!/))*\*/)
  | (?P<quoted>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`\\]|\\.|``)*`)
  | (?P<heredoc>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
  | (?P<word>[^\W\d]\w*)
  | (?P<open>'|"|`|/\*)
  | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUERY_REMEDY: Final = "write one SELECT, WITH, SHOW, DESCRIBE or EXPLAIN statement"


def reading_statement(sql: str) -> str:
    """Return the statement without its closing semicolon.

    Raises:
        ConfigError: it is empty, more than one, or may do more than read.
    """
    words: list[str] = []
    end: int | None = None
    for token in _TOKEN.finditer(sql):
        kind, text = token.lastgroup, token.group()
        if kind == "tag":
            kind = "heredoc"
        if kind == "gap":
            continue
        if kind == "open":
            raise ConfigError(f"the statement has an unclosed {text}", remedy="close it")
        if end is not None:
            raise ConfigError("more than one statement", remedy=_QUERY_REMEDY)
        if text == ";":
            end = token.start()
        words.append(_plain(text) if kind in {"word", "quoted"} else text)
    _refuse(words)
    return sql if end is None else sql[:end]


def _plain(text: str) -> str:
    """A word as ClickHouse matches it; a quoted one is a name or text, but may be a function."""
    return text.lower() if text[0] not in "'\"`" else f"'{text[1:-1].lower()}"


def _refuse(words: list[str]) -> None:
    meant = [word for word in words if word not in {"(", ";"}]
    first = meant[0] if meant else ""
    if first not in READS:
        raise ConfigError(
            f"only reading is allowed, and this begins with {first.upper()!r}"
            if first
            else "the statement is empty",
            remedy=_QUERY_REMEDY,
        )
    pairs = list(zip(words, [*words[1:], ""], strict=True))
    if ("into", "outfile") in pairs:
        raise ConfigError("INTO OUTFILE writes a file", remedy="redirect our own output instead")
    if any(name in {"python", "'python"} and after == "(" for name, after in pairs):
        raise ConfigError("the table function Python reads this process", remedy=_QUERY_REMEDY)
    if len(meant) > 1 and meant[-2] == "format" and meant[-1].isidentifier():
        raise ConfigError("the output format is ours to choose", remedy="leave FORMAT out")
