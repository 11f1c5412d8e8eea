"""What libraries repeat is told once in a while."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import pytest
import structlog

from tailbudget.streams.logs import AGAIN_S, Sparing, set_up


def record(name: str, message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "here", 1, message, arguments, None)


def test_the_same_complaint_is_told_once_in_a_while() -> None:
    """Repetitions are left out for ten seconds, whatever their arguments; others are not."""
    now = 0.0
    sparing = Sparing(lambda: now)
    assert sparing.filter(record("aiokafka", "no node %s", 1))
    assert not sparing.filter(record("aiokafka", "no node %s", 2))
    assert sparing.filter(record("aiokafka", "no coordinator"))
    assert sparing.filter(record("faust", "no node %s", 1))
    now = AGAIN_S
    assert sparing.filter(record("aiokafka", "no node %s", 3))


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> TextIO:
    """Standard error that was closed after logging was set up."""
    stream = open(f"{tmp_path}/log", "w", encoding="utf-8")  # noqa: SIM115, PTH123
    monkeypatch.setattr(sys, "stderr", stream)
    set_up("warning")
    stream.close()
    return stream


def test_a_closed_log_ends_nobody(closed: TextIO) -> None:
    """A line that cannot be written is lost, and whoever wrote it goes on."""
    assert closed.closed
    try:
        assert structlog.get_logger().warning("nobody reads this") is None
    finally:
        structlog.reset_defaults()
        logging.getLogger().handlers.clear()
