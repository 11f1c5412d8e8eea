"""Signals that changed with the onset of an anomaly, as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tailbudget.models.signals import gathered, ranked

MOST: Final = 3
"""Signals that a message or a report names for one anomaly."""

SPAN_MS: Final = 600_000
"""How long before and after an onset signals are looked at."""


def signal_evidence(values: Iterable[Sequence[Any]], onset_ms: int) -> tuple[str, ...]:
    """Return what changed, the strongest first.

    Args:
        values: (name, instance, milliseconds, value).
        onset_ms: when the stage became slower.
    """
    series = gathered((str(n), str(i), int(at), float(v)) for n, i, at, v in values)
    return tuple(str(one) for one in ranked(series, onset_ms)[:MOST])
