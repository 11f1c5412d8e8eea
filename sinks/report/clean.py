"""Make text from outside fit to be shown: one line, of bounded length, without control signs.

Names of routes, stages and services come from whoever sends records. They can hold newlines,
escape sequences for terminals, signs that turn the direction of writing, and any length.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

NAME_LENGTH: Final = 64
"""Characters of a name: as many as a request id keeps."""

SENTENCE_LENGTH: Final = 600
"""Characters of a sentence: ours are below half of that, names of `NAME_LENGTH` included."""

EMPTY: Final = "(empty)"

_SPACES: Final = re.compile(r"\s+")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_JOINERS: Final = frozenset("\u200c\u200d")  # needed within words and emoji


def clean(text: str, length: int) -> str:
    """Return one line of at most `length` characters, of characters that can be seen.

    White space becomes a single space, anything else that is not seen the sign U+FFFD; a longer
    text ends in an ellipsis.
    """
    # Cut before the work: what is far beyond the end cannot be seen.
    line = _SPACES.sub(" ", text[: 4 * length]).strip()
    seen = "".join(_visible(sign) for sign in line)
    return seen if len(seen) <= length else seen[: length - 1].rstrip() + "…"


def clean_name(text: str) -> str:
    """Return a name that is never empty."""
    return clean(text, NAME_LENGTH) or EMPTY


def _visible(sign: str) -> str:
    unseen = unicodedata.category(sign) in _UNSEEN and sign not in _JOINERS
    return "\N{REPLACEMENT CHARACTER}" if unseen else sign


def bare(text: str) -> str:
    """Return a sentence without its full stop, to stand within another."""
    return text.strip().removesuffix(".")


def capital(text: str) -> str:
    """Return a sentence that begins with a capital."""
    return text[:1].upper() + text[1:]
