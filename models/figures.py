"""Numbers as sentences show them: some significant digits, and never a power of ten."""

from __future__ import annotations


def figure(value: float, digits: int = 4) -> str:
    """Return a number with that many significant digits, and with all digits before its point.

    A sentence says 10,820 ms; the format of that precision alone would say 1.082e+04 ms.
    """
    text = f"{value:,.{digits}g}"
    return f"{value:,.0f}" if "e+" in text else text
