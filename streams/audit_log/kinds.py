"""Which way a file is written, by its name and by how it begins."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Final

import orjson

from tailbudget.streams.audit_log.protobufs import is_protobuf

PARQUET: Final = "parquet"
CSV: Final = "csv"
LINES: Final = "lines"
PROTOBUF: Final = "protobuf"
ELEMENTS: Final = "elements"
"""One JSON array, or JSON values over several lines each."""

SUFFIXES: Final = {
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".csv": CSV,
    ".tsv": CSV,
    ".jsonl": LINES,
    ".ndjson": LINES,
    ".json": None,
    ".log": None,
    ".pb": PROTOBUF,
    ".binpb": PROTOBUF,
}
"""Kind by the end of the name; None is told by the content."""

_PACKED: Final = (".gz", ".zst", ".zstd")
_BOM: Final = b"\xef\xbb\xbf"
_DELIMITERS: Final = ",\t;|"
_PROBED: Final = 100


def suffix_of(path: Path) -> str:
    """Return the end of a file's name, that of its compression left out."""
    name = Path(path.stem) if path.suffix.lower() in _PACKED else path
    return name.suffix.lower()


def is_table(path: Path) -> bool:
    """Return whether a file is a table by its name."""
    return SUFFIXES.get(suffix_of(path)) in {CSV, PARQUET}


def kind_of(path: Path, head: bytes) -> str | None:
    """Return the kind of a file; None where it is of none that is known.

    Args:
        path: its name.
        head: its first bytes.
    """
    if head.startswith(b"PAR1"):
        return PARQUET
    if is_protobuf(head):
        return PROTOBUF
    named = SUFFIXES.get(suffix_of(path))
    return named or _by_content(head.removeprefix(_BOM).lstrip())


def delimiter_of(head: bytes) -> str:
    """Return what separates the names in the first line; a comma where nothing does."""
    line = head.removeprefix(_BOM).lstrip().split(b"\n", 1)[0].decode(errors="replace")
    return max(_DELIMITERS, key=line.count)


def _by_content(text: bytes) -> str | None:
    if text.startswith(b"["):
        return ELEMENTS
    lines = text.split(b"\n", _PROBED)[:_PROBED]
    if text.startswith(b"{"):
        return LINES if _is_object(lines[0]) or len(lines) == 1 else ELEMENTS
    if any(_is_object(line) for line in lines):
        return LINES
    return CSV if _is_table(text) else None


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _is_table(text: bytes) -> bool:
    """Return whether the first two lines have as many cells, and the first are names."""
    lines = text.decode(errors="replace").splitlines()[:2]
    rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter_of(text)))
    if len(rows) < 2 or len(rows[0]) < 2 or len(rows[0]) != len(rows[1]):
        return False
    return all(name.strip() and not name.strip()[0].isdigit() for name in rows[0])
