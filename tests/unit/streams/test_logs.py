"""What libraries repeat is told once in a while."""

from __future__ import annotations

import logging

from tailbudget.streams.logs import AGAIN_S, Sparing


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
