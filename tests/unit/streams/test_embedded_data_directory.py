"""The lock on the embedded stack's data directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.data_directory import DataDirectory, running_worker


def test_a_second_user_is_told_who_has_it(tmp_path: Path) -> None:
    """A second owner gets an error with the first one's process id and a remedy."""
    with DataDirectory(tmp_path / "d") as first:
        with pytest.raises(ConfigError, match=f"in use by process {os.getpid()}") as caught:
            DataDirectory(first.path).acquire()
        assert "--data" in caught.value.remedy
    with DataDirectory(first.path):
        pass


def test_the_announcement_is_seen_while_the_owner_lives(tmp_path: Path) -> None:
    """Others read what the owner announced, and nothing before or after."""
    assert running_worker(tmp_path) is None
    with DataDirectory(tmp_path) as directory:
        assert running_worker(tmp_path) is None
        directory.announce(web="http://127.0.0.1:6066", bootstrap="127.0.0.1:9")
        assert running_worker(tmp_path) == {
            "pid": os.getpid(),
            "web": "http://127.0.0.1:6066",
            "bootstrap": "127.0.0.1:9",
        }
    assert running_worker(tmp_path) is None
    assert not (tmp_path / "worker.json").exists()


def test_a_killed_owner_leaves_no_lock(tmp_path: Path) -> None:
    """After SIGKILL the files stay behind but mean nothing, and the directory can be taken."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from tailbudget.streams.data_directory import DataDirectory\n"
        "directory = DataDirectory(Path(sys.argv[1]))\n"
        "directory.acquire()\n"
        "directory.announce(web='x')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (tmp_path / "worker.json").exists()
    assert running_worker(tmp_path) is None
    with DataDirectory(tmp_path):
        assert not (tmp_path / "worker.json").exists()


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """A data directory that cannot be one is a configuration error that names it."""
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"cannot use the data directory .*file"):
        DataDirectory(path).acquire()
