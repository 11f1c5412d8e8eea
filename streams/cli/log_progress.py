"""How far the reading of a log is, on standard error; and its rows that are no records."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from tailbudget.schemas.errors import ConfigError

if TYPE_CHECKING:
    from tailbudget.schemas.records import Rejected
    from tailbudget.streams.audit_log import Progress

_MOST_SAID: Final = 3


class LogProgress:
    """A bar on a terminal, and nothing elsewhere."""

    def __init__(self) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rows]} rows"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("reading", total=None, rows="0")

    def __enter__(self) -> Self:
        if self._bar.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._bar.console.is_terminal:
            self._bar.stop()

    def show(self, progress: Progress) -> None:
        """Show how far the reading is."""
        total = None if progress.share is None else 1.0
        done = progress.share or 0.0
        self._bar.update(
            self._task,
            description=progress.name,
            total=total,
            completed=done,
            rows=f"{progress.rows:,}",
        )


class Rejects:
    """Where rows that are no records are told: the first few on standard error, all in a file.

    Args:
        path: the file, of JSON lines; None writes none.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._count = 0
        self._console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._file = self._path.open("w", encoding="utf-8")
            except OSError as error:
                raise ConfigError(
                    f"{self._path} cannot be written: {error.strerror}",
                    remedy="give another --rejected",
                ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
        if self._count > _MOST_SAID:
            where = self._path or "--rejected FILE writes them all"
            self._console.print(f"rejected {self._count:,} rows in all: {where}")

    def write(self, where: str, what: Rejected) -> None:
        """Tell of one row."""
        self._count += 1
        if self._count <= _MOST_SAID:
            self._console.print(f"{where}: {what.reason}: {what.detail}")
        if self._file is not None:
            row = {"where": where, "reason": what.reason, "detail": what.detail}
            raw = what.raw.decode("utf-8", "replace")
            self._file.write(json.dumps(row | {"raw": raw}, ensure_ascii=False) + "\n")
