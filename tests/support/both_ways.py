"""Equality of two reports of the same requests: one of a log, one of the stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ONLY_STREAM = frozenset({"late"})
"""Reasons of the ledger that a file cannot have: nobody judged its windows before."""

KEPT = frozenset({"budgets", "silences", "regressions", "stage_states"})
"""Keys that a log cannot fill: a worker keeps them beside the panes."""


def plain(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without what only one of the ways can say."""
    provenance = dict(report["provenance"], source=None, assumptions=None)
    ledger = {reason: n for reason, n in report["ledger"].items() if reason not in ONLY_STREAM}
    same = {key: part for key, part in report.items() if key not in KEPT}
    return {**same, "provenance": provenance, "ledger": ledger}


def differences(left: Any, right: Any, path: str = "") -> Iterator[str]:
    """Yield where two JSON values differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            yield from differences(left.get(key, "(no)"), right.get(key, "(no)"), f"{path}.{key}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for place, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif left != right or type(left) is not type(right):
        yield f"{path}: {left!r} offline, {right!r} in the stream"
