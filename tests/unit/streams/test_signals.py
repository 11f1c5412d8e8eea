"""Signals as messages: what is read, and what is told to be none."""

from __future__ import annotations

import pytest

from tailbudget.schemas.anomaly_rows import SignalRow
from tailbudget.streams.agents.signals import signal_row

AT_MS = 1_772_445_600_000


@pytest.mark.parametrize("at", ['"2026-03-02T10:00:00Z"', "1772445600", "1772445600000"])
def test_a_value_with_its_time(at: str) -> None:
    """Times as in records; an instance may be missing."""
    line = f'{{"service": "chat", "instance": "i-1", "timestamp": {at}, "name": "t", "value": 81}}'
    assert signal_row(line.encode()) == SignalRow("chat", "i-1", "t", AT_MS, 81.0)
    bare = line.replace('"instance": "i-1", ', "")
    assert signal_row(bare.encode()).instance == ""


@pytest.mark.parametrize(
    ("line", "lacks"),
    [
        ("[]", "no JSON object"),
        ("{", "end|JSON"),
        ('{"service": "chat", "timestamp": 1772445600, "value": 1}', "lacks name"),
        ('{"service": "c", "name": "t", "timestamp": "soon", "value": 1}', "lacks a timestamp"),
        ('{"service": "c", "name": "t", "timestamp": 1772445600, "value": "9"}', "finite value"),
        ('{"service": "c", "name": "t", "timestamp": 1772445600, "value": true}', "finite value"),
        ('{"service": "c", "name": "t", "timestamp": 1772445600}', "finite value"),
    ],
)
def test_what_is_no_signal_says_what_it_lacks(line: str, lacks: str) -> None:
    """It is counted and left out, with the reason in the log."""
    with pytest.raises(ValueError, match=lacks):
        signal_row(line.encode())
