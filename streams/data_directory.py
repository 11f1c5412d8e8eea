"""The directory that the embedded stack keeps its data in: one process at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from tailbudget.schemas.errors import ConfigError


class DataDirectory:
    """Owns a data directory for as long as the context lasts.

    The lock is the kernel's: it goes with the process, however that ends, and a stale file does
    not count. `worker.json` says where the owner can be asked (its HTTP address, its broker).

    Attributes:
        path: the directory; created when it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            ConfigError: another process has it, or the directory cannot be used.
        """
        make_directory(self.path)
        try:
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unusable(self.path, error) from None
        if not _take(lock):
            owner = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise ConfigError(
                f"the data directory {self.path} is in use by process {owner}",
                remedy="stop that process, or choose another directory with --data",
            ) from None
        self._lock = lock
        try:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
            self._announcement.unlink(missing_ok=True)
        except OSError as error:
            self.release()
            raise _unusable(self.path, error) from None

    def release(self) -> None:
        """Give the lock back and take the announcement away. Does nothing when not locked."""
        if self._lock is None:
            return
        self._announcement.unlink(missing_ok=True)
        os.ftruncate(self._lock, 0)
        os.close(self._lock)
        self._lock = None

    def announce(self, **facts: str | int) -> None:
        """Write `worker.json`, whole or not at all: the process id and what is given.

        Raises:
            ConfigError: the directory cannot be written to.
        """
        draft = self.path / "worker.json.new"
        text = orjson.dumps({"pid": os.getpid(), **facts}, option=orjson.OPT_INDENT_2)
        try:
            draft.write_bytes(text)
            draft.replace(self._announcement)
        except OSError as error:
            raise _unusable(self.path, error) from None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    @property
    def _announcement(self) -> Path:
        return self.path / "worker.json"


def make_directory(path: Path) -> None:
    """Create a directory, and those above it, unless it exists.

    Raises:
        ConfigError: it cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: OSError) -> ConfigError:
    remedy = "choose another with --data or data_dir"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        remedy = "free space on its disk, or choose another with --data or data_dir"
    return ConfigError(f"cannot use the data directory {path}: {error.strerror}", remedy=remedy)


def _take(lock: int) -> bool:
    # Twice, for `running_worker` of another process holds the lock for an instant.
    for pause_s in (0.05, 0.0):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause_s)
        else:
            return True
    return False


def running_worker(path: Path) -> dict[str, Any] | None:
    """Return what the process that owns the directory announced; None when none owns it."""
    try:
        lock = os.open(path / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(path / "worker.json")
    else:
        return None
    finally:
        os.close(lock)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        facts = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return facts if isinstance(facts, dict) else None
