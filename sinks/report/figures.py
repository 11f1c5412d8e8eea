"""How a number reads: three or four digits, thousands apart, milliseconds throughout.

What is not known reads as a reason, never as a blank, a zero or a dash.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

from tailbudget.schemas.sections import Interval

NOT_MEASURED: Final = "not measured"
NO_TARGET: Final = "no target"
_SMALLEST: Final = 6  # decimals at most: less is rounding error of the sums
_MS: Final = 3  # the sketch begins at a microsecond
_PCT: Final = 2
_RATIO: Final = 3


def number(value: float, most: int = _SMALLEST) -> str:
    """Return a number with three or four significant digits, all digits from 1,000 on.

    Args:
        value: the number.
        most: decimals at most.
    """
    if not math.isfinite(value):
        return NOT_MEASURED
    size = abs(value)
    text = f"{value:,.{min(_decimals(size), most)}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _decimals(size: float) -> int:
    if size >= 1000 or not size:
        return 0
    if size >= 10:
        return 1
    return min(2 - math.floor(math.log10(size)), _SMALLEST)


def count(n: int) -> str:
    """Return a count, thousands apart."""
    return f"{n:,}"


def times(n: int, one: str, many: str = "") -> str:
    """Return a count with its noun, such as "1 request" and "2 requests"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def not_measured(reason: str = "") -> str:
    """Return what stands in the place of a figure."""
    return f"{NOT_MEASURED}: {reason}" if reason else NOT_MEASURED


def insufficient(n: int) -> str:
    """Return what stands in the place of a figure that takes more requests."""
    return f"insufficient (n={n:,})" if n else not_measured("n=0")


def ms(value: float | None, missing: str = NOT_MEASURED) -> str:
    """Return milliseconds, or what stands in their place."""
    return missing if value is None else f"{number(value, _MS)} ms"


def signed_ms(value: float | None, missing: str = NOT_MEASURED) -> str:
    """Return a difference in milliseconds with its sign."""
    return missing if value is None else f"{signed(value, _MS)} ms"


def signed(value: float, most: int = _SMALLEST) -> str:
    """Return a number with its sign; what rounds to 0 has none."""
    text = number(value, most)
    return text if value <= 0 or text in ("0", NOT_MEASURED) else f"+{text}"


def pct(value: float | None, missing: str = NOT_MEASURED) -> str:
    """Return per cent."""
    return missing if value is None else f"{number(value, _PCT)} %"


def ratio(value: float | None, missing: str = NOT_MEASURED) -> str:
    """Return a number without a unit."""
    return missing if value is None else number(value, _RATIO)


def interval_ms(interval: Interval | None, missing: str = NOT_MEASURED) -> str:
    """Return an interval of milliseconds."""
    if interval is None:
        return missing
    low, high = interval
    return f"{number(low, _MS)} to {number(high, _MS)} ms"


def yes_no(value: bool | None, missing: str = NOT_MEASURED) -> str:  # noqa: FBT001
    """Return a truth, or what stands in the place of one."""
    return missing if value is None else ("yes" if value else "no")


def words(key: str) -> str:
    """Return a key of ours, such as "fix_tail", as words."""
    return key.replace("_", " ")


def time_text(time_ns: int) -> str:
    """Return nanoseconds since the epoch as RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
