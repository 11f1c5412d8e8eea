"""Read a log line by line, however large it is and whether or not it is compressed."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self, cast

from tailbudget.schemas.errors import ConfigError, DecodeError

MAX_LINE_BYTES: Final = 15_000_000
STDIN: Final = Path("-")


class LogLines:
    """Iterates over the lines of a file, without their ends; "-" is standard input.

    Compression (.gz, .zst) goes by the name. Memory is bounded by `max_line_bytes`.

    Attributes:
        size_bytes: of the file as it lies there; None when unknown.
        read: lines read so far, of any kind.
        blank: lines that held nothing.
        oversize: numbers of the lines that were longer than the bound, the first 100 of them.
        oversize_count: how many they are.
    """

    def __init__(self, path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        """Open the file.

        Raises:
            ConfigError: it cannot be opened.
        """
        self.path = path
        self.read = self.blank = self.oversize_count = 0
        self.oversize: list[int] = []
        self._max_bytes = max_line_bytes
        try:
            self._raw: IO[bytes] = sys.stdin.buffer if path == STDIN else path.open("rb")
        except OSError as error:
            raise ConfigError(
                f"cannot read the log {path}: {error.strerror}", remedy="check the path"
            ) from None
        self.size_bytes = None if path == STDIN else path.stat().st_size
        self._stream = _decompressed(path, self._raw)

    def read_bytes(self) -> int:
        """Return how much of `size_bytes` has been read."""
        return 0 if self.size_bytes is None else self._raw.tell()

    def __iter__(self) -> Iterator[bytes]:
        """Yield each line that is neither blank nor oversize.

        Raises:
            DecodeError: the compressed file is damaged.
        """
        try:
            while line := self._stream.readline(self._max_bytes + 1):
                self.read += 1
                if len(line) > self._max_bytes and not line.endswith(b"\n"):
                    self._skip_rest()
                elif line := line.rstrip(b"\r\n"):
                    yield line
                else:
                    self.blank += 1
        except (OSError, EOFError, zlib.error) as error:
            raise DecodeError(
                f"the log {self.path} is damaged after line {self.read}: {error}",
                remedy="what came before is published; mend the file and replay it from there",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.path != STDIN:
            self._stream.close()
            self._raw.close()

    def _skip_rest(self) -> None:
        self.oversize_count += 1
        if len(self.oversize) < 100:
            self.oversize.append(self.read)
        while (part := self._stream.readline(1 << 20)) and not part.endswith(b"\n"):
            pass


def _decompressed(path: Path, raw: IO[bytes]) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if path.suffix == ".zst":
        return _zstd(raw)
    return raw


def _zstd(raw: IO[bytes]) -> io.BufferedReader:
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and few logs are compressed so

    return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"))
