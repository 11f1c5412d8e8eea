"""The one place that tries again: patient with what is away, and with nothing else."""

from __future__ import annotations

import asyncio

import pytest

from tailbudget.schemas.errors import ClickHouseError, StorageError
from tailbudget.streams.retrying import retrying


def test_it_tries_until_the_service_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three failures are waited for, ever longer, and the answer comes through."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("tailbudget.streams.retrying.asyncio.sleep", sleep)
    tries = iter([ClickHouseError("away"), ClickHouseError("away"), ClickHouseError("away"), None])

    async def call() -> str:
        if (error := next(tries)) is not None:
            raise error
        return "written"

    assert asyncio.run(retrying(call)) == "written"
    assert waits == [0.25, 0.5, 1.0]


def test_a_final_error_is_the_callers() -> None:
    """A write that was refused for good is not tried again."""
    tries = 0

    async def call() -> None:
        nonlocal tries
        tries += 1
        raise StorageError("no such table")

    with pytest.raises(StorageError):
        asyncio.run(retrying(call))
    assert tries == 1
