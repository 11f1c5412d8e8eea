"""Base of the formats of which every message is translated, for itself, to native records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import orjson

from tailbudget.schemas import ledger
from tailbudget.schemas.records import Decoded, Rejected
from tailbudget.streams.sources.base import Rules, SourceMessage
from tailbudget.streams.sources.lines import Lines, apart, exactly, split
from tailbudget.streams.sources.native import NativeDecoder

MAX_CONTAINER: Final = 16_000_000
"""Bytes of a message that may hold many records; its parsed form takes some ten times as much."""


MAX_DOCUMENT: Final = 128_000_000
"""Bytes of a result that is one document: some hundred thousand requests, read in a gigabyte."""


class NotOfFormatError(ValueError):
    """What was read is not of the format.

    Attributes:
        reason: one of the "rejected.*" reasons.
    """

    def __init__(self, detail: str, reason: str = ledger.NOT_OF_FORMAT) -> None:
        super().__init__(detail)
        self.reason = reason


def within(text: bytes, most: int) -> bytes:
    """Return a text of at most so many bytes.

    Raises:
        NotOfFormatError: it is longer.
    """
    if len(text) > most:
        detail = f"{len(text):,} bytes; at most {most:,} are read"
        raise NotOfFormatError(detail, ledger.OVERSIZE)
    return text


class Translated:
    """Decodes a format by translation; see the package docstring for what it promises.

    Attributes:
        name: the format.
        rules: how its source is read.
        says: what a reader of a report must know of all logs of the format.
        whole: a message is one text, and not a record a line.
        private: its texts may hold what people wrote; dead letters do not carry them.
        tool: what writes aggregates of the same form, for the refusal of those.
    """

    name = ""
    says: tuple[str, ...] = ()
    whole = False
    private = False
    tool: str | None = None
    first_offset: int | None = None

    def __init__(self, rules: Rules) -> None:
        self.rules = self.altered(rules)
        self._native = NativeDecoder(self.rules)
        self._max_record_bytes = MAX_DOCUMENT if self.whole else self.rules.max_record_bytes

    @classmethod
    def altered(cls, rules: Rules) -> Rules:
        """Return the rules for the native records; a format without services has its name."""
        return replace(rules, service=rules.service or cls.name)

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native records of one text.

        Raises:
            NotOfFormatError: it is none of the format.
        """
        raise NotImplementedError

    def records(self, text: bytes) -> list[bytes]:
        """Return the native records of one text.

        Raises:
            NotOfFormatError: it is none of the format, or nested more deeply than can be written.
        """
        try:
            return list(self.translate(text))
        except orjson.JSONEncodeError as error:
            raise NotOfFormatError(f"a field cannot be read: {error}") from None

    @classmethod
    def natives(cls, values: Sequence[bytes], rules: Rules) -> list[bytes]:
        """Return the native records of texts; what is not of the format is left out."""
        found: list[bytes] = []
        one = cls(rules)
        for value in values:
            try:
                found += one.records(value)
            except NotOfFormatError:
                continue
        return found

    def decode(self, messages: Sequence[SourceMessage]) -> Decoded:
        """Decode one micro-batch; never raises for what a message contains."""
        most = self._max_record_bytes
        lines = apart(messages, most) if self.whole else exactly(split(messages, most))
        return self._native.decode_lines(self._translated(lines))

    def finish(self) -> Decoded | None:
        """Return None: nothing is held."""
        return None

    def _translated(self, lines: Lines) -> Lines:
        native: list[bytes] = []
        row: list[int] = []
        rejected: list[tuple[int, Rejected]] = []
        for index, line in enumerate(lines.lines):
            try:
                found = self.records(line)
            except NotOfFormatError as error:
                dead = lines.reject(index, error.reason, str(error))
                dead = replace(dead, raw=b"") if self.private else dead
                rejected.append((int(lines.arrival_ns[index]), dead))
                continue
            native += found
            row += [index] * len(found)
        at = np.array(row, np.int64)
        return replace(
            lines,
            lines=native,
            # A record says what was read, and nothing else of a text that may be private.
            raw=native if self.private else [lines.raw[index] for index in row],
            offset=lines.offset[at],
            arrival_ns=lines.arrival_ns[at],
            blob=b"\n".join(native),
            rejected=(*lines.rejected, *rejected),
        )


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; of what is no list, none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def read_object(text: bytes) -> dict[str, Any]:
    """Return the JSON object that a text is.

    Raises:
        NotOfFormatError: it is none.
    """
    found = read_json(text)
    if not isinstance(found, dict):
        raise NotOfFormatError("JSON, but no object", ledger.NOT_OBJECT)
    return found


def read_json(text: bytes) -> Any:
    """Return what a text is in JSON.

    Raises:
        NotOfFormatError: it is none.
    """
    try:
        return orjson.loads(text.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        try:
            text.decode()
        except UnicodeDecodeError as wrong:
            detail = f"byte {wrong.start} is not UTF-8"
            raise NotOfFormatError(detail, ledger.NOT_UTF8) from None
        raise NotOfFormatError(str(error), ledger.NOT_JSON) from None
