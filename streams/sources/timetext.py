"""What a timestamp is: RFC 3339, or an epoch in s, ms, us or ns, told apart by its size.

The zone may be missing (UTC is meant) or lack its colon (as ISO 8601 and strftime's %z write it),
the "T" may be a space, the fraction may have any number
of digits (those beyond nanoseconds are cut). An epoch may be fractional and may be a string.
"""

from __future__ import annotations

import calendar
import re
from decimal import Context, Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

NS: Final = 1_000_000_000
UNREADABLE: Final = -(2**63)
"""Result for a text that is no timestamp."""

LIMIT: Final = 9 * 10**18
"""Times are cut to this many nanoseconds either way, far outside of the credible range."""

FIRST_NS: Final = 946_684_800 * NS
"""2000-01-01: no record is credibly older."""

LAST_NS: Final = 4_102_444_800 * NS
"""2100-01-01: no record is credibly younger."""

_UNITS: Final = ((10**11, NS), (10**14, 10**6), (10**17, 10**3))
"""An epoch below the first is in units of the second, in nanoseconds; others are nanoseconds.

10^11 s is the year 5138 and 10^11 ms is March 1973, so that no credible time is ambiguous.
"""

_ISO: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
NAIVE: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?", re.ASCII)
"""A time that names no zone."""

_EPOCH: Final = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d{1,2})?", re.ASCII)
_EXACT: Final = Context(prec=200)
_LONGEST: Final = 64


def epoch_ns(text: str) -> int:
    """Return nanoseconds since the epoch, or `UNREADABLE`."""
    iso = _ISO.fullmatch(text)
    if iso is not None:
        return _iso_ns(iso)
    if len(text) <= _LONGEST and _EPOCH.fullmatch(text):
        value = Decimal(text)
        scale = next((scale for top, scale in _UNITS if abs(value) < top), 1)
        return max(-LIMIT, min(LIMIT, int(_EXACT.multiply(value, Decimal(scale)))))
    return UNREADABLE


def unit_ns(epoch: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nanoseconds in the unit of each epoch."""
    scale = np.ones(len(epoch), np.int64)
    for top, unit in reversed(_UNITS):
        scale[epoch < top] = unit
    return scale


def _iso_ns(match: re.Match[str]) -> int:
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, zone_hours, zone_minutes = match.groups()[6:]
    if not (1 <= month <= 12 and year >= 1 and 1 <= day <= calendar.monthrange(year, month)[1]):
        return UNREADABLE
    shift = int(zone_hours or 0) * 3600 + int(zone_minutes or 0) * 60
    if hour > 23 or minute > 59 or second > 59 or int(zone_hours or 0) > 23:
        return UNREADABLE
    if int(zone_minutes or 0) > 59:
        return UNREADABLE
    seconds = calendar.timegm((year, month, day, hour, minute, second))
    seconds += shift if sign == "-" else -shift
    nanoseconds = seconds * NS + int((fraction or "0")[:9].ljust(9, "0"))
    return max(-LIMIT, min(LIMIT, nanoseconds))
