"""Open a file or standard input, take off its compression, and look at how it begins."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, cast

import pyarrow as pa

from tailbudget.schemas.errors import ConfigError, DecodeError

STDIN: Final = Path("-")
HEAD_BYTES: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


class Opened:
    """A file, open for reading.

    Attributes:
        head: its first 64 KiB, without compression; they are still to be read from `stream`.
        stream: its bytes, without compression.
        compressed: whether it had any.
    """

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            ConfigError: it cannot be opened.
        """
        try:
            self._raw: IO[bytes] = sys.stdin.buffer if path == STDIN else path.open("rb")
        except OSError as error:
            raise ConfigError(
                f"cannot read the log {path}: {error.strerror}", remedy="check the path"
            ) from None
        self._counted = _Rejoined(b"", self._raw)
        source = io.BufferedReader(self._counted)
        magic = source.peek(4)
        self.compressed = magic.startswith((_GZIP, _ZSTD))
        inner: IO[bytes] = source
        if magic.startswith(_GZIP):
            inner = cast(IO[bytes], gzip.GzipFile(fileobj=source))
        elif magic.startswith(_ZSTD):
            inner = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(source, "r"), "zstd"))
        self.head = _read_up_to(inner, HEAD_BYTES)
        self.stream = io.BufferedReader(_Rejoined(self.head, inner), 1 << 18)

    def read_bytes(self) -> int:
        """Return how many bytes of the file, as it lies there, have been read."""
        return self._counted.count

    def seekable(self) -> IO[bytes]:
        """Return the rest as a temporary file, for a format that is read from its end."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        shutil.copyfileobj(self.stream, file, 1 << 20)
        file.seek(0)
        return file

    def close(self) -> None:
        """Let go of the file."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()


@contextmanager
def damage(name: str) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    try:
        yield
    except (OSError, EOFError, zlib.error, UnicodeError, csv.Error, pa.ArrowException) as error:
        text = " ".join(str(error).split())
        raise DecodeError(
            f"{name} is damaged, or not of its format: {text[:300]}",
            remedy="mend the file; nothing of it has been judged",
        ) from error


def _read_up_to(stream: IO[bytes], size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size and (part := stream.read(size - len(parts))):
        parts += part
    return bytes(parts)


class _Rejoined(io.RawIOBase):
    """Bytes that were read already, then the rest of a stream.

    Attributes:
        count: bytes read of the rest.
    """

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        super().__init__()
        self.count = 0
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        size = min(len(buffer), len(self._head))
        if size:
            buffer[:size] = self._head[:size]
            self._head = self._head[size:]
            return size
        part = self._rest.read1(len(buffer)) if hasattr(self._rest, "read1") else None
        if part is None:
            part = self._rest.read(len(buffer))
        buffer[: len(part)] = part
        self.count += len(part)
        return len(part)
