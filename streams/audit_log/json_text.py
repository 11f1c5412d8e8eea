"""Records of JSON text, a block at a time: one a line, or the elements of an array."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Final

import numpy as np
import orjson

from tailbudget.schemas.errors import DecodeError
from tailbudget.streams.audit_log.blocks import LineBlock
from tailbudget.streams.log_lines import MAX_LINE_BYTES
from tailbudget.streams.sources.translated import MAX_DOCUMENT

_CHUNK: Final = 1 << 22
_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+'
_TOKEN: Final = re.compile(
    rb'\{[^{}\[\]"]*+(?:' + _TEXT + rb'"[^{}\[\]"]*+)*+\}|' + _TEXT + rb'(?:"|\\?\Z)|[{}\[\],]',
    re.DOTALL,
)
"""A flat object whole, which most records are; else a text, a bracket or a comma."""

_ENVELOPE: Final = re.compile(rb'\{\s*"data"\s*:\s*\[')
"""An object whose first key holds the records, as Jaeger answers; the rest is passed over."""

_OPEN: Final = frozenset({0x7B, 0x5B})
_CLOSE: Final = frozenset({0x7D, 0x5D})
_COMMA: Final = 0x2C
_QUOTE: Final = 0x22


def line_blocks(stream: IO[bytes], format_name: str) -> Iterator[LineBlock]:
    """Yield the lines that are not blank, numbered from 0, blank ones included.

    Of a line of more than `MAX_LINE_BYTES` the beginning is kept, for the decoder to reject.
    """
    rest, first, skipping = b"", 0, False
    while chunk := stream.read(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if skipping and lines:
            lines[0], skipping = b"", False  # its row number was given to its beginning
            first -= 1
        if skipping:
            rest = b""
        elif len(rest) > MAX_LINE_BYTES:
            lines.append(rest)
            rest, skipping = b"", True
        yield from _block(format_name, lines, first)
        first += len(lines)
    if rest and not skipping:
        yield from _block(format_name, [rest], first)


def element_blocks(stream: IO[bytes], format_name: str, name: str) -> Iterator[LineBlock]:
    """Yield the elements of an array, or of JSON values that stand one after another.

    Args:
        stream: the text.
        format_name: of the records.
        name: of the file, for messages.

    Raises:
        DecodeError: an element does not end.
    """
    splitter, first = _Splitter(), 0
    while chunk := stream.read(_CHUNK):
        elements = splitter.feed(chunk)
        if splitter.held() > MAX_LINE_BYTES:
            raise DecodeError(
                f"{name}: record {first + len(elements) + 1:,} does not end within"
                f" {MAX_LINE_BYTES:,} bytes",
                remedy="an array of flat objects is read, or one object a line",
            )
        yield from _block(format_name, elements, first)
        first += len(elements)
    yield from _block(format_name, splitter.finish(), first)


def document_blocks(
    stream: IO[bytes], format_name: str, name: str, *, lines: bool = True
) -> Iterator[LineBlock]:
    """Yield a file that is one document, or one document a line unless it is no text of lines.

    Raises:
        DecodeError: it is longer than is read.
    """
    text = stream.read(MAX_DOCUMENT + 1)
    if len(text) > MAX_DOCUMENT:
        raise DecodeError(
            f"{name} is one document of more than {MAX_DOCUMENT:,} bytes",
            remedy="have the tool write fewer requests, or one document a line for each run",
        )
    if not lines:
        yield LineBlock(format_name, [text], np.zeros(1, np.int64), 1)
        return
    each = text.splitlines()
    yield from _block(format_name, each if _are_documents(each) else [text.strip()], 0)


def _are_documents(lines: list[bytes]) -> bool:
    """Return whether the first line, of several, is a document for itself."""
    if len(lines) < 2:
        return False
    try:
        return isinstance(orjson.loads(lines[0]), dict)
    except orjson.JSONDecodeError:
        return False


def first_element(head: bytes) -> list[bytes]:
    """Return the first element of such text, if it ends within it."""
    return _Splitter().feed(head)[:1]


def _block(format_name: str, lines: list[bytes], first: int) -> Iterator[LineBlock]:
    kept = [index for index, line in enumerate(lines) if line and not line.isspace()]
    if kept:
        values = [lines[index].rstrip(b"\r") for index in kept]
        row = np.array(kept, np.int64) + first
        yield LineBlock(format_name, values, row, first + len(lines))


class _Splitter:
    """Cuts JSON text at the commas of its array, or after each value where there is no array.

    The array may be the "data" of an object.

    The elements are text as it stood there, so that the decoder judges them like lines.
    """

    def __init__(self) -> None:
        self._text = b""
        self._base: int | None = None
        self._inside = self._over = False

    def held(self) -> int:
        """Return the bytes of the element that has not ended."""
        return len(self._text)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take more text, and return the elements that have ended."""
        if self._over:
            return []
        self._text += chunk
        if self._base is None:
            self._begin()
        found: list[bytes] = []
        start = depth = 0
        for token in _TOKEN.finditer(self._text):
            if self._text[token.start()] == _QUOTE:
                continue
            last = self._text[token.end() - 1]
            flat = token.end() - token.start() > 1
            depth += 0 if flat else (last in _OPEN) - (last in _CLOSE)
            if not self._ends_element(last, depth):
                continue
            end = token.start() if self._base else token.end()
            found.append(_one_line(self._text[start:end]))
            start = token.end()
            if depth < 0:  # the array ends; what follows stands for itself
                self._base = depth = 0
                if self._inside:
                    self._over = True
                    break
        self._text = b"" if self._over else self._text[start:]
        return found

    def _ends_element(self, last: int, depth: int) -> bool:
        if self._base:
            return depth < 0 or (last == _COMMA and depth == 0)
        return last in _CLOSE and depth <= 0

    def finish(self) -> list[bytes]:
        """Return what is left over at the end."""
        return [_one_line(self._text)]

    def _begin(self) -> None:
        text = self._text.removeprefix(b"\xef\xbb\xbf").lstrip()
        envelope = _ENVELOPE.match(text)
        if envelope is not None:
            text, self._inside = text[envelope.end() - 1 :], True
        if text:
            self._base = 1 if text.startswith(b"[") else 0
            self._text = text[self._base :]


def _one_line(element: bytes) -> bytes:
    return element.strip().replace(b"\n", b" ")
