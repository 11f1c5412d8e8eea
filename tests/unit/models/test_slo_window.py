"""Periods: rolling ones, and calendar ones in local time over daylight saving."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailbudget.models.slo_window import begin_ns, span_at
from tailbudget.schemas.objectives import UNITS, Period

SECOND_NS = 10**9
HOUR_NS = 3600 * SECOND_NS
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")


def ns(text: str, zone: str = "UTC") -> int:
    """Return the time of a local text."""
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return round(local.timestamp()) * SECOND_NS


def test_a_rolling_period_ends_now() -> None:
    """Thirty days back from now, whatever the calendar says."""
    now_ns = ns("2026-03-29T12:00:00")
    span = span_at(Period(30, "d"), now_ns)
    assert (span.end_ns, span.end_ns - span.start_ns) == (now_ns, 30 * 24 * HOUR_NS)


@pytest.mark.parametrize(
    ("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)]
)
def test_a_day_has_the_hours_that_its_zone_gives_it(day: str, hours: int) -> None:
    """Berlin's days of the change to and from summer time have 23 and 25 hours."""
    period = Period(1, "d", "2026-01-01T00:00:00", "Europe/Berlin")
    span = span_at(period, ns(f"{day}T12:00:00", "Europe/Berlin"))
    assert span.start_ns == ns(f"{day}T00:00:00", "Europe/Berlin")
    assert span.end_ns - span.start_ns == hours * HOUR_NS


def test_a_month_begins_at_local_midnight_on_either_side_of_a_change() -> None:
    """April in New York is from midnight to midnight there, four hours behind UTC."""
    period = Period(1, "M", "2026-01-01T00:00:00", "America/New_York")
    span = span_at(period, ns("2026-04-15T03:00:00"))
    assert span.start_ns == ns("2026-04-01T04:00:00")
    assert span.end_ns == ns("2026-05-01T04:00:00")
    assert span_at(period, span.start_ns - 1).end_ns == span.start_ns


def test_short_months_do_not_move_later_ones() -> None:
    """Periods that begin on the 31st begin on a shorter month's last day, then on the 31st."""
    period = Period(1, "M", "2026-01-31T00:00:00")
    begins = [begin_ns(period, number) for number in range(4)]
    assert begins == [ns(f"2026-{day}T00:00:00") for day in ("01-31", "02-28", "03-31", "04-30")]


def test_a_local_time_that_does_not_exist() -> None:
    """Half past two on the day of the change is the instant that winter time gives it."""
    period = Period(1, "d", "2026-03-01T02:30:00", "Europe/Berlin")
    span = span_at(period, ns("2026-03-29T12:00:00"))
    assert span.start_ns == ns("2026-03-29T01:30:00")


def test_quarters_and_years_follow_the_calendar() -> None:
    """The second quarter has 91 days, a leap year 366."""
    quarter = span_at(Period(1, "Q", "2026-01-01T00:00:00"), ns("2026-05-01T00:00:00"))
    year = span_at(Period(1, "Y", "2026-01-01T00:00:00"), ns("2028-05-01T00:00:00"))
    assert [(s.end_ns - s.start_ns) / (24 * HOUR_NS) for s in (quarter, year)] == [91, 366]


@given(
    count=st.integers(1, 5),
    unit=st.sampled_from(UNITS),
    zone=st.sampled_from(ZONES),
    second=st.integers(1_600_000_000, 1_900_000_000),
)
def test_periods_cover_time_without_gap_or_overlap(
    count: int, unit: str, zone: str, second: int
) -> None:
    """Every moment belongs to one period, and the next one begins where it ends."""
    period = Period(count, unit, "2024-01-31T02:30:00", zone)
    now_ns = second * SECOND_NS
    span = span_at(period, now_ns)
    assert span.start_ns <= now_ns < span.end_ns
    assert span_at(period, span.end_ns).start_ns == span.end_ns
    assert span_at(period, span.start_ns) == span
