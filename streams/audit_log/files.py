"""The files of a log: one, standard input, or all of a directory in the order of their names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import orjson

from tailbudget.schemas.errors import ConfigError, DecodeError, Refused
from tailbudget.streams.audit_log import kinds
from tailbudget.streams.audit_log.aggregates import refusal, tool_of
from tailbudget.streams.audit_log.blocks import Block
from tailbudget.streams.audit_log.encodings import LATIN1, encoding_of, not_utf8
from tailbudget.streams.audit_log.json_text import (
    document_blocks,
    element_blocks,
    first_element,
    line_blocks,
)
from tailbudget.streams.audit_log.opened import STDIN, Opened, damage
from tailbudget.streams.audit_log.protobufs import protobuf_blocks
from tailbudget.streams.audit_log.tables import csv_blocks, parquet_blocks
from tailbudget.streams.log_time import (
    JAEGER,
    NATIVE,
    OTLP_PROTO,
    ZIPKIN,
    access_log,
    format_of,
    format_of_text,
)
from tailbudget.streams.sources import ACCESS_LOGS, DOCUMENTS, FORMATS, repair, zipkin_binary
from tailbudget.streams.sources.proto_messages import is_binary

_PROBED: Final = 100
_DOUBTFUL: Final = (None, kinds.CSV, kinds.ELEMENTS)
_BINARY: Final = frozenset({JAEGER, ZIPKIN})
"""Formats that may be protocol buffers or Thrift beside JSON."""

_TEXTS: Final = frozenset(one.name for one in ACCESS_LOGS)


class FilePart:
    """One file as a part of a log; see `blocks.Part`."""

    def __init__(self, path: Path, format_name: str | None) -> None:
        self.path = path
        self.name = "standard input" if path == STDIN else str(path)
        self.size_bytes = path.stat().st_size if path.is_file() else 0
        self.head = b""
        self._format = format_name
        self._share: float | None = None

    def share(self) -> float | None:
        """Return how much of it has been read; None when that is unknown."""
        return self._share

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks, rows numbered from 0."""
        with damage(self.name):
            file = Opened(self.path)
            try:
                self.head = file.head
                yield from self._blocks(file)
            finally:
                file.close()

    def _blocks(self, file: Opened) -> Iterator[Block]:
        kind = self._kind()
        if kind == kinds.PARQUET:
            yield from self._parquet(file)
            return
        for block in self._text_blocks(file.stream, kind):
            if self.size_bytes:
                self._share = min(file.read_bytes() / self.size_bytes, 1.0)
            yield block

    def _text_blocks(self, stream: IO[bytes], kind: str) -> Iterator[Block]:
        if kind == kinds.PROTOBUF:
            return self._binary_blocks(stream)
        encoding = encoding_of(self.head)
        if encoding is not None and (kind == kinds.CSV or encoding != LATIN1):
            raise not_utf8(self.name, encoding)
        if kind == kinds.CSV:
            return csv_blocks(stream, self.head, self.name)
        records = self._format if self._format in FORMATS else self._records()
        if records in DOCUMENTS:
            return document_blocks(stream, records, self.name)
        if records == JAEGER:
            return element_blocks(stream, JAEGER, self.name)
        if kind == kinds.LINES:
            return line_blocks(stream, records or NATIVE)
        return element_blocks(stream, records or NATIVE, self.name)

    def _binary_blocks(self, stream: IO[bytes]) -> Iterator[Block]:
        name = self._format if self._format in _BINARY else OTLP_PROTO
        if name == ZIPKIN and zipkin_binary.is_thrift(self.head):
            return document_blocks(stream, ZIPKIN, self.name, lines=False)
        return protobuf_blocks(stream, name, self.name)

    def _parquet(self, file: Opened) -> Iterator[Block]:
        direct = self.path.is_file() and not file.compressed  # no pipe of the shell
        with self.path.open("rb") if direct else file.seekable() as source:
            for block, self._share in parquet_blocks(source):
                yield block

    def _kind(self) -> str:
        if self._format in (kinds.CSV, kinds.PARQUET):
            return str(self._format)
        if self._format is None and zipkin_binary.recognises(self.head):
            self._format = ZIPKIN
        if self._format == OTLP_PROTO or (self._format in _BINARY and is_binary(self.head)):
            return kinds.PROTOBUF
        kind = kinds.kind_of(self.path, self.head)
        if self._format is None and kind in _DOUBTFUL and not kinds.is_table(self.path):
            self._format = access_log(self.head.split(b"\n")[:_PROBED])
        if self._format in _TEXTS:
            return kinds.LINES
        if kind is None and not self.head.strip():
            return kinds.LINES
        if kind is None:
            raise self._unknown()
        return kind

    def _records(self) -> str:
        """Return the format of the first record of JSON text."""
        for text in (*self.head.split(b"\n")[:_PROBED], *first_element(self.head)):
            try:
                record = orjson.loads(text.removeprefix(repair.BOM))
            except orjson.JSONDecodeError:
                continue
            while isinstance(record, list) and record:
                record = record[0]
            if isinstance(record, dict):
                return format_of(record)
        return format_of_text(self.head.removeprefix(repair.BOM)) or NATIVE

    def _unknown(self) -> Refused | DecodeError:
        tool = tool_of(self.head)
        if tool is not None:
            return refusal(self.name, tool)
        return DecodeError(
            f"{self.name} is no log of a known format",
            remedy="give Parquet, CSV with names in the first line, JSON lines or a JSON array",
        )


def parts_of(path: Path, format_name: str | None) -> tuple[list[FilePart], list[str]]:
    """Return the files of a log, and the names of those of a directory that are none of it.

    Raises:
        ConfigError: there is no such file, or the directory holds none of a known kind.
    """
    if path != STDIN and not path.exists():
        raise ConfigError(f"there is no log {path}", remedy="check the path")
    if not path.is_dir():
        return [FilePart(path, format_name)], []
    every = sorted(file for file in path.rglob("*") if file.is_file() and _is_shown(file, path))
    known = [file for file in every if kinds.suffix_of(file) in kinds.SUFFIXES]
    if not known:
        raise ConfigError(
            f"no file in {path} is a log",
            remedy=f"names end in {', '.join(kinds.SUFFIXES)}, also followed by .gz or .zst",
        )
    others = [str(file) for file in every if file not in set(known)]
    return [FilePart(file, format_name) for file in known], others


def _is_shown(file: Path, root: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in file.relative_to(root).parts)
