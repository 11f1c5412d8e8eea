"""Texts that are not UTF-8, and what they seem to be."""

from __future__ import annotations

import codecs
from typing import Final

from tailbudget.schemas.errors import DecodeError

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
"""Byte order marks; that of UTF-32 begins like one of UTF-16."""

LATIN1: Final = "LATIN1"
"""Stands for all encodings of one byte a letter: which one it is nobody can tell."""

_PROBED: Final = 200
_HALF: Final = 0.4
_REMEDY: Final = "convert it first, such as iconv -f {0} -t utf-8 FILE"


def encoding_of(head: bytes) -> str | None:
    """Return the encoding of a text that is none that is read; None where it may be UTF-8."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    probe = head[:_PROBED]
    if probe and probe.count(0) > _HALF * len(probe):
        return "UTF-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return LATIN1
    return None


def not_utf8(name: str, encoding: str) -> DecodeError:
    """Return the error of a file in another encoding."""
    seems = "no UTF-8" if encoding == LATIN1 else f"{encoding}, and no UTF-8"
    return DecodeError(f"{name} is {seems}", remedy=_REMEDY.format(encoding))
