"""The two stages that a client of a model can tell apart: up to the first token, and from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def parts(total_ms: float | None, first_ms: float | None) -> dict[str, Any]:
    """Return the columns of a time to the first token, and of what follows it.

    A time beyond the total, or none, gives no stages: a client that was not streamed to has none.
    """
    if first_ms is None or first_ms <= 0:
        return {}
    if total_ms is None or first_ms > total_ms:
        return {"ttft_ms": first_ms}
    return {"ttft_ms": first_ms, "prefill_ms": first_ms, "decode_ms": total_ms - first_ms}


def mean_gap(gaps: Any, per_ms: float = 1.0) -> float | None:
    """Return the mean of the times between tokens or chunks, in milliseconds.

    Args:
        gaps: what stands where a list of them belongs.
        per_ms: milliseconds in one of their units.
    """
    if not isinstance(gaps, Sequence) or isinstance(gaps, str | bytes) or not gaps:
        return None
    if not all(isinstance(gap, int | float) and not isinstance(gap, bool) for gap in gaps):
        return None
    return sum(gaps) / len(gaps) * per_ms
