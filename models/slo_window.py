"""The span that an error budget is for: rolling, or by the calendar of a time zone.

Calendar periods are counted in local time from `Period.start`, so that a month begins at local
midnight whatever daylight saving time does; days then have 23 to 25 hours. A local time that does
not exist is the instant that its old offset gives, one that exists twice is the first of the two
(PEP 495, fold 0). A period that would begin on the 31st begins on a shorter month's last day, and
later ones are not moved by that. Minutes and hours are elapsed time, in either kind.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from tailbudget.schemas.durations import UNIT_S
from tailbudget.schemas.objectives import Period

SECOND_NS: Final = 10**9
_MONTHS: Final = {"M": 1, "Q": 3, "Y": 12}
_DAYS: Final = {"d": 1, "w": 7}


class Span(NamedTuple):
    """A span of event time, its end exclusive."""

    start_ns: int
    end_ns: int


def span_at(period: Period, now_ns: int) -> Span:
    """Return the span of a period that a moment belongs to; a rolling one ends there."""
    if not period.start:
        return Span(now_ns - length_s(period) * SECOND_NS, now_ns)
    number = _guess(period, now_ns)
    while begin_ns(period, number) > now_ns:
        number -= 1
    while begin_ns(period, number + 1) <= now_ns:
        number += 1
    return Span(begin_ns(period, number), begin_ns(period, number + 1))


def length_s(period: Period) -> int:
    """Return the seconds of a period; of a calendar period, those of its plain length."""
    return period.count * UNIT_S[period.unit]


def begin_ns(period: Period, number: int) -> int:
    """Return when a calendar period begins; number 0 begins at `Period.start`."""
    first = datetime.fromisoformat(period.start)
    steps = number * period.count
    if period.unit in _MONTHS:
        return _instant_ns(_months_later(first, steps * _MONTHS[period.unit]), period.zone)
    if period.unit in _DAYS:
        return _instant_ns(first + timedelta(days=steps * _DAYS[period.unit]), period.zone)
    return _instant_ns(first, period.zone) + steps * UNIT_S[period.unit] * SECOND_NS


def _guess(period: Period, now_ns: int) -> int:
    return (now_ns - begin_ns(period, 0)) // (length_s(period) * SECOND_NS)


def _months_later(first: datetime, months: int) -> datetime:
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    day = min(first.day, monthrange(year, month + 1)[1])
    return first.replace(year=year, month=month + 1, day=day)


def _instant_ns(local: datetime, zone: str) -> int:
    at = local.replace(tzinfo=ZoneInfo(zone), fold=0).astimezone(UTC)
    return round(at.timestamp()) * SECOND_NS
