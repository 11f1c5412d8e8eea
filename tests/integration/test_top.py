"""What `tailbudget top` reads: through the worker that owns the engine, and without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from running_worker import RunningWorker

from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings import Settings
from tailbudget.streams.data_directory import DataDirectory
from tailbudget.streams.embedded import free_port
from tailbudget.streams.top import questions
from tailbudget.streams.top.asking import Asking

ROW = AuditRow("a'b", 60, 1_772_445_600 * 10**9, 1, "ok", 2000, 0, p50_ms=12.5)


def test_a_worker_answers_for_its_engine(
    start: Callable[..., RunningWorker], tmp_path: Path
) -> None:
    """Each question goes to the running worker; afterwards the directory is asked, once."""
    port = free_port()
    worker = start(web={"enabled": True, "port": port})
    worker.store.write_audits([ROW])
    asking = Asking(worker.settings)
    with DataDirectory(tmp_path) as directory:
        directory.announce(host="127.0.0.1", port=port)
        (row,) = asking.rows(questions.services(60))
        assert (row["service"], row["p50_ms"], row["end_ms"]) == ("a'b", 12.5, ROW.end_ns // 10**6)
        assert asking.rows(questions.service("a'b", 60)) == [row]
        assert asking.rows(questions.service("a", 60)) == []
        assert asking.place == f"the worker at 127.0.0.1:{port}"
        for query in (questions.stages("a'b", 60), questions.cohorts("a'b", 60)):
            assert asking.rows(query) == []
        assert asking.rows(questions.alerts("a'b")) == asking.rows(questions.alerts_open()) == []
    assert asking.rows(questions.services(60)) == [row]
    assert "which no worker writes to now" in asking.place
    worker.store.write_audits([AuditRow("new", 60, ROW.end_ns, 1, "ok", 1, 0)])
    assert asking.rows(questions.services(60)) == [row]


def test_a_directory_without_engine_is_told(tmp_path: Path) -> None:
    """A wrong directory is an error with a remedy, and no engine is made in it."""
    asking = Asking(Settings().in_directory(tmp_path))
    with pytest.raises(ConfigError, match="there is no embedded ClickHouse in"):
        asking.rows("SELECT 1")
    assert list(tmp_path.iterdir()) == []
