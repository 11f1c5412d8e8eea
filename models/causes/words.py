"""Numbers as sentences show them: three digits, and whole numbers above."""

from __future__ import annotations

import math


def num(value: float) -> str:
    """Return a number with three significant digits, or without decimals from 1,000 on."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def in_ms(value: float) -> str:
    """Return milliseconds with their unit."""
    return f"{num(value)} ms"
