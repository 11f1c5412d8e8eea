"""The two stages that a client of a model can tell apart: up to the first token, and from there."""

from __future__ import annotations

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
