"""Workers for the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from running_worker import RunningWorker, settings_for

from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.delivery.agent import Channel

Start = Callable[..., RunningWorker]


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
