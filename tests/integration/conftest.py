"""A broker for the suite: the one that TAILBUDGET_TEST_BOOTSTRAP names, else the embedded one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from running_worker import RunningWorker, settings_for

from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.delivery.agent import Channel
from tailbudget.streams.embedded import EmbeddedBroker

Start = Callable[..., RunningWorker]


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the broker."""
    if given := os.environ.get("TAILBUDGET_TEST_BOOTSTRAP"):
        yield given
        return
    with EmbeddedBroker(log_path=tmp_path_factory.getbasetemp() / "broker.log") as broker:
        yield broker.bootstrap


@pytest.fixture
def start(bootstrap: str, clickhouse: ClickHouse, tmp_path: Path) -> Iterator[Start]:
    """Start a worker; keyword arguments are groups of settings."""
    with ExitStack() as stack:

        def start_worker(
            channels: Sequence[Channel] = (), **groups: Mapping[str, Any]
        ) -> RunningWorker:
            settings = settings_for(bootstrap, clickhouse, tmp_path, **groups)
            return stack.enter_context(RunningWorker(settings, clickhouse, channels))

        yield start_worker
